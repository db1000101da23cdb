import { test } from "vitest";
import { holdLives, longestMs } from "./held-lives.ts";

test(
  "[K17] all that a consciousness was told and did can be reached from every later input",
  ({ task }) => holdLives("consciousness", task.meta),
  longestMs,
);
