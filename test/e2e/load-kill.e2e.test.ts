import { expect, test } from "vitest";
import { killRound } from "../kill/kill-round.ts";
import { fullLoad } from "../kill/load.ts";
import { timersLeftOver } from "../kill/stored-timers.ts";
import { wordsStillThere } from "../kill/taken-away.ts";
import { watchSockets } from "../kill/wire.ts";
import { ownHouseForFile } from "./support/for-file.ts";

/** One seed of `npm run test:kill`, with two spaces in place of five. */
watchSockets();
const house = await ownHouseForFile();

test("[D1] [D2] [D3] [D4] [R1] [R2] [R3] [R7] SIGKILL under load: nothing lost, doubled, stuck", async () => {
  const load = { ...fullLoad, spaces: 2, people: 2 };
  const { verdict, kills, deleted } = await killRound(house, 1, { crashes: true, load });
  const { lost, doubled, stuck, counts } = verdict;
  expect({ lost, doubled, stuck }).toEqual({ lost: [], doubled: [], stuck: [] });
  expect(kills).toBeGreaterThan(0);
  expect(counts.events).toBeGreaterThan(20);
  expect(deleted.length).toBeGreaterThan(0);
  expect(await wordsStillThere(house, deleted)).toEqual([]);
  expect(timersLeftOver(house.dataDirectory)).toEqual([]);
}, 120_000);
