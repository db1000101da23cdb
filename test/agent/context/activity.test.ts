import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maxActivityLines } from "../../../src/agent/bounds.ts";
import { activitySection, type Deed, deedsIn } from "../../../src/agent/context/activity.ts";
import type { Message } from "../../../src/protocol/message.ts";
import { agent, analyst, called, day, designer, husam, said } from "./cast.ts";
import { hostile } from "./hostile.ts";
import { linesOf, Reader } from "./reader.ts";

/** What an input tells of what other agents did. */
const alpha = { id: "spc_ALPHA", name: "Project Alpha" };
const now = day("15:07");

const lines = (deeds: Deed[], room?: number): string[] =>
  linesOf(activitySection({ deeds, dropped: [] }, now, room).section.text).filter((line) => line !== "");

/** The deed of another agent's answer, or of `more`. */
const deed = (more: Partial<Message> = {}, space = alpha): Deed => {
  const message = said("1", "15:00", designer, "Yes", { replyTo: "msg_0", ...more });
  const [deed] = deedsIn(space, [message], analyst.id);
  if (!deed) throw new Error("the message tells of no deed");
  return deed;
};

describe("what messages tell of other agents", () => {
  test("who answered, asked, wrote, or used a tool; not people, and not the agent itself", () => {
    const tool = (status: "complete" | "requires_action") => ({ id: "tc_1", name: "deploy", input: {}, status });
    const writer = agent("Writer");
    const messages = [
      said("0", "09:00", writer, "Good morning"),
      said("1", "14:00", husam, "Who has the numbers?"),
      said("2", "14:01", designer, "Here they are."),
      said("3", "14:02", designer, "And the chart."),
      said("4", "14:03", analyst, "Thank you"),
      said("5", "14:50", designer, "Shall I go on?", { expectsReply: true }),
      called("6", "14:51", designer, tool("requires_action")),
      called("7", "14:52", designer, tool("complete")),
      said("8", "14:53", writer, "As Husam asked elsewhere …", { origin: { spaceId: "spc_X" } }),
      said("9", "15:06", writer, "That was long ago", { replyTo: "msg_1" }),
    ].map((message, index) => ({ ...message, seq: index + 1 }));
    const deeds = deedsIn(alpha, messages, analyst.id);
    expect(deeds.map(({ seq }) => seq)).toEqual([1, 3, 4, 6, 7, 8, 9, 10]);
    expect(lines(deeds)).toEqual([
      "ACTIVITY (other agents in your spaces, UTC):",
      '  - [09:00] "Writer" wrote in "Project Alpha"',
      '  - [14:01] "Designer" answered in "Project Alpha"',
      '  - [14:02] "Designer" answered in "Project Alpha"',
      '  - [14:50] "Designer" asked in "Project Alpha"',
      '  - [14:51] "Designer" asked in "Project Alpha"',
      '  - [14:52] "Designer" used "deploy" in "Project Alpha"',
      '  - [14:53] "Writer" wrote in "Project Alpha"',
      '  - [15:06] "Writer" answered in "Project Alpha"',
    ]);
  });

  test("[K14] as many of the newest lines as the config says, and room for them", () => {
    const deeds = Array.from({ length: 150 }, (_, index) => deed({}, { id: `spc_${index}`, name: `Space ${index}` }));
    for (const entries of [1, 7, 100]) {
      const { section, dropped } = activitySection({ deeds, dropped: [], entries }, now);
      expect(linesOf(section.text)).toHaveLength(entries + 1);
      expect(dropped).toEqual([]);
    }
  });

  test("nothing where nothing was done, and nothing of the day before", () => {
    expect(activitySection({ deeds: [], dropped: [] }, now).section).toEqual({ name: "activity", text: "", tokens: 0 });
    expect(lines([deed({ createdAt: "2026-02-17T15:06:59.000Z" })])).toEqual([]);
    expect(lines([deed({ createdAt: "2026-02-17T15:07:01.000Z" })])).toHaveLength(2);
  });

  test("what was done again in the same minute is told once", () => {
    const again = deed({ createdAt: "2026-02-18T15:00:59.000Z", seq: 2 });
    expect(lines([deed(), again, deed({ createdAt: day("15:01"), seq: 3 })])).toHaveLength(3);
  });

  test("[B3] the newest 20 lines at most, newest last; fewer where they do not fit, with a notice", () => {
    const many = Array.from({ length: 50 }, (_, index) =>
      deed(
        { seq: index, createdAt: day(`14:${String(index).padStart(2, "0")}`) },
        { ...alpha, id: `spc_${index % 3}` },
      ),
    );
    const shown = lines(many.toReversed());
    expect(shown).toHaveLength(maxActivityLines + 1);
    expect(shown[1]).toContain("[14:30]");
    expect(shown.at(-1)).toContain("[14:49]");
    const tight = activitySection({ deeds: many, dropped: [{ name: "activity", reason: "1 space" }] }, now, 250);
    expect(tight.section.tokens).toBeLessThanOrEqual(250);
    expect(linesOf(tight.section.text).at(-1)).toContain("[14:49]");
    const left = maxActivityLines - (linesOf(tight.section.text).length - 1);
    expect(tight.dropped).toEqual([
      { name: "activity", reason: "1 space" },
      { name: "activity", reason: `${left} earlier lines do not fit context.maxTokens` },
    ]);
  });
});

test("[S2] names of agents, spaces and tools come back exactly, and add no line", () => {
  fc.assert(
    fc.property(hostile, hostile, fc.option(hostile, { nil: undefined }), (agentName, spaceName, used) => {
      const sender = { ...designer, name: agentName };
      const toolCall =
        used === undefined ? {} : { toolCall: { id: "tc_1", name: used, input: {}, status: "complete" as const } };
      const asked = { sender, expectsReply: true, ...toolCall };
      const [heading, line, ...more] = lines([deed(asked, { id: "spc_1", name: spaceName })]);
      expect([heading, more]).toEqual(["ACTIVITY (other agents in your spaces, UTC):", []]);
      const reader = new Reader(line ?? "");
      reader.take("  - [15:00] ");
      expect(reader.string()).toBe(agentName);
      reader.take(used === undefined ? " asked" : " used ");
      if (used !== undefined) expect(reader.string()).toBe(used);
      reader.take(" in ");
      expect(reader.string()).toBe(spaceName);
      reader.end();
    }),
    { numRuns: 1000, seed: 41 },
  );
});
