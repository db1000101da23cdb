import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maxToldShares } from "../../../src/agent/bounds.ts";
import { blocksInInput, type KnownShare, keyOf, shareLines } from "../../../src/agent/context/blocks.ts";
import { compose } from "../../../src/agent/context/compose.ts";
import {
  renderStateChanges,
  shareNews,
  toldBlocks,
  toldShares,
} from "../../../src/agent/context/consciousness/state.ts";
import { analyst, fresh, historyOf, husam, said, snapshotOf, space, triggerOf } from "./cast.ts";
import { hostile } from "./hostile.ts";
import { readable } from "./readable.ts";

/** What an agent is told of blocks that others share with it, where these stand in no input. */
const share = (label: string, owner = "Scribe", permission: KnownShare["permission"] = "ReadWrite"): KnownShare => ({
  ...{ key: keyOf(label, `ent_${owner}`), label, owner, permission },
});
const many = Array.from({ length: maxToldShares + 3 }, (_, index) => share(`plan_${index}`));

const alpha = space("Project Alpha", husam, analyst);
const asked = said("A1", "15:06", husam, "@DataAnalyst what does the plan say?");
const inputOf = (shares: KnownShare[], maxTokens?: number) => {
  const rules = {
    ...({ key: keyOf("rules", "ent_Archive"), label: "rules", type: "core", permission: "ReadOnly" } as const),
    ...{ sharedFrom: "Archive", rendered: "Be kind.", pinned: false, usedAt: 0 },
  };
  return compose(
    snapshotOf({
      config: maxTokens === undefined ? {} : { context: { maxTokens, reservedResponseTokens: 256 } },
      now: "15:07",
      spaces: [alpha],
      blocks: blocksInInput([rules], { batchBlocks: new Set(), maxTokens: 1000 }),
      shares,
      trigger: triggerOf(asked, alpha, "mention"),
      histories: [historyOf(alpha, [fresh(asked)])],
    }),
  );
};

test("[K10] a timeline names the shared blocks that it does not show, below those that it shows", async () => {
  const input = readable(inputOf([share("plan"), share("diary", "Archive", "Append")]));
  const shown = input.slice(input.indexOf("━━━ user"));
  await expect(shown).toMatchFileSnapshot("./timeline/shared-blocks.golden.txt");
});

test("[B3] beyond the bound, and beyond the budget, a timeline counts them", () => {
  const text = JSON.stringify(inputOf(many).messages);
  expect(text).toContain(`\\"plan_${maxToldShares - 1}\\" is shared`);
  expect(text).not.toContain(`\\"plan_${maxToldShares}\\" is shared`);
  expect(text).toContain("(3 more are shared with you: block_list lists them)");
  const { dropped, messages } = inputOf(many, 1600);
  const [cut] = dropped.filter(({ name }) => name === "shares");
  const left = Number(/^(\d+) do not fit context\.maxTokens: block_list lists them$/.exec(cut?.reason ?? "")?.[1]);
  expect(left).toBeGreaterThan(0);
  expect(JSON.stringify(messages)).toContain(`(${left} more are not shown: block_list lists them)`);
});

describe("a consciousness", () => {
  const none = { inInput: {}, inLast: {} };

  test("[K10] is told what came, what changed and what was taken back, once", async () => {
    const before = toldShares([share("plan"), share("diary", "Archive", "Append"), share("old")]);
    const now = [share("plan", "Scribe", "ReadOnly"), share("diary", "Archive", "Append"), share("ideas", "Omar")];
    const lines = shareNews(before, now, none);
    await expect(`${renderStateChanges({}, {}, [], lines)}\n`).toMatchFileSnapshot(
      "./consciousness/shared-blocks.golden.txt",
    );
    expect(shareNews(toldShares(now), now, none)).toEqual([]);
    expect(renderStateChanges({}, {}, [], [])).toBeNull();
  });

  test("[K10] is not told by a line of a block that it reads whole, or has read", () => {
    const shown = toldBlocks([{ key: share("plan").key, label: "plan", type: "core", text: "…" }]);
    expect(shareNews({}, [share("plan")], { inInput: shown, inLast: {} })).toEqual([]);
    expect(shareNews(toldShares([share("plan")]), [], { inInput: {}, inLast: shown })).toEqual([]);
  });

  test("[B3] is told of the first by name, and how many more there are", () => {
    const lines = shareNews({}, many, none);
    expect(lines).toHaveLength(maxToldShares + 1);
    expect(lines.at(-1)).toBe("(3 more are now shared with you: block_list lists them)");
  });
});

test("[S2] an owner's name cannot write a line, or end its quotes", () => {
  fc.assert(
    fc.property(hostile, (owner) => {
      const [line = ""] = shareLines([share("plan", owner)]).lines;
      const [, before = "", name = ""] =
        /^("plan" is shared with you by )(.*) \(ReadWrite\): block_load to read it$/s.exec(line) ?? [];
      expect(before).not.toBe("");
      expect(JSON.parse(name)).toBe(JSON.parse(JSON.stringify(owner)));
      expect(line.split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/)).toHaveLength(1);
    }),
    { numRuns: 500 },
  );
});
