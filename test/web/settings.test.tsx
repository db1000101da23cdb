import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import type { Erasure } from "../../src/client/index.ts";
import { EraseQuestion, ErasureReport } from "../../src/web/settings/erasing.tsx";
import { areTokensSpent, bytesText, Limits, storageWords } from "../../src/web/settings/limits.tsx";
import { keptWords } from "../../src/web/settings/retention.tsx";
import { UsageTable } from "../../src/web/settings/usage.tsx";

/** The words of what is shown, one piece after another. */
const shown = (element: React.ReactElement): string =>
  renderToStaticMarkup(element)
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll("&#x27;", "'")
    .replaceAll(/\s+/g, " ")
    .trim();

const used = { maxAgents: 20, maxEntities: 81, maxSpaces: 3, maxStorageBytes: 1_500_000, maxTokensPerDay: 70 };

test("[L8] limits show what is used of them, and which is nearly or wholly used up", () => {
  const limits = { maxAgents: 20, maxEntities: 100, maxSpaces: 9 };
  expect(shown(<Limits {...{ limits, used }} />)).toMatch(
    /^Agents 20 of 20 used up People and services 81 of 100 nearly used up Spaces 3 of 9 Storage 1.5 MB What is new/,
  );
  const unlimited = "Agents 20 People and services 81 Spaces 3 Storage 1.5 MB";
  expect(shown(<Limits {...{ limits: {}, used }} />)).toBe(unlimited);
  expect(shown(<Limits {...{ limits: { maxTokensPerDay: 100 }, used }} />)).toBe(
    `${unlimited} Tokens leased today 70 of 100`,
  );
});

test("[L8] a limit of nothing is used up", () => {
  const limits = { maxSpaces: 0 };
  expect(shown(<Limits {...{ limits, used: { ...used, maxSpaces: 0 } }} />)).toContain("Spaces 0 of 0 used up");
});

test("[L10] tokens of today are used up once too few are left for a step", () => {
  const spent = { day: new Date().toISOString().slice(0, 10), maxTokensPerDay: 100 };
  const noted = [spent, { ...spent, maxTokensPerDay: 99 }, { ...spent, day: "2026-11-24" }, undefined];
  expect(noted.map((each) => areTokensSpent(100, each))).toEqual([true, false, false, false]);
  expect(areTokensSpent(undefined, spent)).toBe(false);
  const limits = { maxTokensPerDay: 100 };
  expect(shown(<Limits {...{ limits, used }} isSpent />)).toContain("Tokens leased today 70 of 100 used up");
});

test("[L17] what nears the end of its storage says what it stores, and what comes then", () => {
  const storage = { bytes: 6.9e9, maxBytes: 8.5e9, state: "near" } as const;
  expect(storageWords(storage)).toBe("Stores 6.9 GB of 8.5 GB: once it is full, what is new is refused.");
  expect(storageWords({ ...storage, state: "full" })).toContain("what is new is refused until something is deleted");
  expect(storageWords({ ...storage, state: "ok" })).toBeNull();
  expect([0, 999, 1000, 8_589_934_592].map(bytesText)).toEqual(["0 byte", "999 byte", "1 kB", "8.6 GB"]);
});

test("[L15] use is shown by name, by id where nothing is there any more, and in all", () => {
  const rows = [
    { id: "spc_a", tokens: 1200, runs: 3, messages: 4, about: { name: "Orchard" } },
    { id: "spc_b", tokens: 0, runs: 0, messages: 1, about: {} },
  ];
  const total = { tokens: 1300, runs: 4, messages: 5 };
  expect(shown(<UsageTable by="space" {...{ rows, total }} />)).toBe(
    "Space Tokens Runs Messages Stores Orchard 1,200 3 4 spc_b 0 0 1 The whole workspace 1,300 4 5",
  );
  const ofAgents = shown(<UsageTable by="agent" rows={[]} total={total} />);
  expect(ofAgents).toBe("Agent Tokens Runs Stores The whole workspace 1,300 4");
});

test("[L16] an erasure says before what goes and may be left, then how far it has come", () => {
  const question = shown(<EraseQuestion name="Mona" />);
  for (const words of ["Gone for good: the messages of Mona", "models wrote in words of their own", "be taken back"])
    expect(question).toContain(words);
  const begun = { id: "ent_mona", kind: "person", state: "running", createdAt: "2026-11-25T08:00:00.000Z" } as const;
  const figures = { objects: 2, rows: 1204, requests: 9, left: 3, waiting: ["spc_a"], unknown: ["What a model wrote"] };
  const running: Erasure = { ...begun, ...figures };
  expect(shown(<ErasureReport erasure={running} />)).toBe(
    "It goes on by itself. 2 objects visited, 3 left (next: spc_a); 1,204 rows changed, by 9 requests. " +
      "What cannot be known, and may be left: What a model wrote",
  );
  const done: Erasure = { ...running, state: "done", left: 0, waiting: [], completedAt: "2026-11-25T08:01:00.000Z" };
  expect(shown(<ErasureReport erasure={done} />)).toMatch(/^Done, .*have let it go\. 2 objects visited, 0 left; /);
});

test("[L18] how long messages stay is said in days", () => {
  expect([undefined, 1].map(keptWords)).toEqual([
    "Messages stay for ever.",
    "Messages are deleted a day after they were said.",
  ]);
});
