import { test } from "vitest";
import { longestMs } from "./held-lives.ts";
import { holdWorlds } from "./held-worlds.ts";

test(
  "[C17] nothing outside tells of a confidential space: two worlds of a timeline",
  ({ task }) => holdWorlds("timeline", task.meta),
  longestMs,
);
