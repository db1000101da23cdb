import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import type { Erasure } from "../../src/client/index.ts";
import { EraseQuestion, ErasureReport } from "../../src/web/settings/erasing.tsx";
import { keptWords } from "../../src/web/settings/retention.tsx";
import { bytesText, Limits, NearList, storageWords } from "../../src/web/settings/room.tsx";
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
  expect(shown(<Limits {...{ limits, used }} />)).toBe(
    "Agents 20 of 20 used up People and services 81 of 100 nearly used up Spaces 3 of 9 Storage 1.5 MB " +
      "What is new is refused where a limit is used up: delete what you need no more, or ask the operator for more.",
  );
});

test("[L8] where the operator set no limit nothing is said to be used up", () => {
  expect(shown(<Limits {...{ limits: {}, used }} />)).toBe("Agents 20 People and services 81 Spaces 3 Storage 1.5 MB");
  expect(shown(<Limits {...{ limits: { maxTokensPerDay: 100 }, used }} />)).toContain("Tokens leased today 70 of 100");
});

test("[L17] what nears the end of its storage is named with what it stores", () => {
  const storage = { bytes: 6.9e9, maxBytes: 8.5e9, state: "near" } as const;
  const near = [{ id: "ent_a", about: { name: "Scribe", storage } }];
  expect(shown(<NearList near={near} />)).toBe(
    "Scribe Stores 6.9 GB of 8.5 GB: once it is full, what is new is refused.",
  );
  expect(storageWords({ ...storage, state: "full" })).toContain("what is new is refused until something is deleted");
  expect(storageWords({ ...storage, state: "ok" })).toBeNull();
});

test.each([
  [0, "0 byte"],
  [999, "999 byte"],
  [1000, "1 kB"],
  [8_589_934_592, "8.6 GB"],
])("%d bytes are shown as %s", (bytes, text) => {
  expect(bytesText(bytes)).toBe(text);
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
  expect(shown(<UsageTable by="agent" rows={[]} total={total} />)).toBe(
    "Agent Tokens Runs Stores The whole workspace 1,300 4",
  );
});

const running: Erasure = {
  id: "ent_mona",
  kind: "person",
  state: "running",
  objects: 2,
  rows: 1204,
  requests: 9,
  left: 3,
  waiting: ["spc_attic", "ent_scribe"],
  unknown: ["What a model wrote"],
  createdAt: "2026-11-25T08:00:00.000Z",
};

test("[L16] an erasure shows how far it has come, and at its end what cannot be known", () => {
  expect(shown(<ErasureReport erasure={running} />)).toMatch(
    /It goes on by itself; spc_attic is next\..*visited 2 Left to visit 3 Rows changed 1,204 .*may be left: What a model wrote$/,
  );
  const completedAt = "2026-11-25T08:01:00.000Z";
  const done: Erasure = { ...running, state: "done", left: 0, waiting: [], completedAt };
  expect(shown(<ErasureReport erasure={done} />)).toMatch(/^Done, .*have let it go\..*Left to visit 0/);
});

test("[L16] the question before an erasure says what goes for good, and what may be left", () => {
  const question = shown(<EraseQuestion name="Mona" />);
  for (const words of [
    "Gone for good: the messages of Mona",
    "models wrote in words of their own",
    "cannot be taken back",
  ])
    expect(question).toContain(words);
});

test("[L18] how long messages stay is said in days", () => {
  expect([undefined, 1, 30].map(keptWords)).toEqual([
    "Messages stay for ever.",
    "Messages are deleted a day after they were said.",
    "Messages are deleted 30 days after they were said.",
  ]);
});
