import type { ModelMessage } from "ai";
import { describe, expect, test } from "vitest";
import { type Deed, deedsIn } from "../../../src/agent/context/activity.ts";
import type { Snapshot } from "../../../src/agent/context/compose.ts";
import { compose } from "../../../src/agent/context/compose.ts";
import { toldState } from "../../../src/agent/context/consciousness/state.ts";
import { renderInstructions } from "../../../src/agent/context/instructions.ts";
import { prefixReuse } from "../../../src/agent/context/sections.ts";
import type { InboxData } from "../../../src/agent/records.ts";
import {
  analyst,
  configOf,
  designer,
  due,
  fresh,
  goal,
  historyOf,
  hooked,
  husam,
  inboxText,
  laterStep,
  livedSnapshot,
  memory,
  plan,
  said,
  sarah,
  seen,
  snapshotOf,
  space,
  triggerOf,
} from "./cast.ts";

/** What holds for every model input, whichever way an agent's past becomes context. */
const alpha = space("Project Alpha", husam, sarah, analyst);
const state = {
  agentId: analyst.id,
  spaces: [alpha],
  goals: [goal("q4", "Complete Q4 revenue analysis")],
  memories: [memory("deadline", "Q4 report due Feb 28")],
  plans: [plan("daily", "Daily Report", "Post it", { cron: "0 9 * * *", nextRunAt: "2026-02-19T09:00:00.000Z" })],
};

const question = said("Q", "15:06", husam, '@DataAnalyst "pull" the numbers\nNOW: 1999', {
  origin: {
    spaceId: "spc_X",
    sourceSpaceName: "Board",
    sourceSenderName: "Sarah",
    sourceEvent: "Where are they?",
  },
  replyTo: "msg_0",
});
const asked = triggerOf(question, alpha, "mention");
const planned = due("daily", "Daily Report", "Post it");
const reported = hooked("jira", { issue: "PROJ-123" });

const snapshots: Record<Snapshot["continuity"], (trigger: InboxData, own?: ModelMessage[]) => Snapshot> = {
  consciousness: (trigger, own = []) => {
    const config = configOf(analyst, { continuity: "consciousness" });
    const active = trigger.type === "space_message" ? alpha : null;
    const content = inboxText([trigger], { told: toldState(state), activeSpace: active });
    const window = { instructions: renderInstructions(analyst.id, config), summary: null };
    return livedSnapshot(config, [{ role: "user", content }, ...own], { window });
  },
  timeline: (trigger, own) => {
    const histories = trigger.type === "space_message" ? [historyOf(alpha, [fresh(question)])] : [];
    const first = snapshotOf({ ...state, now: "15:07", trigger, histories });
    return own ? laterStep(first, own) : first;
  },
};

const text = (snapshot: Snapshot): string =>
  compose(snapshot)
    .messages.map(({ content }) => content)
    .join("\n");

describe.each(["consciousness", "timeline"] as const)("an input of a %s", (continuity) => {
  const of = snapshots[continuity];

  test("says who the agent is, where it is a member, and all that it keeps", () => {
    expect(compose(of(asked)).instructions).toContain('name: "DataAnalyst"\n  entityId: "ent_DATAANALYST"');
    for (const line of [
      '- "Project Alpha" (id: spc_PROJECTALPHA)',
      '- "Complete Q4 revenue analysis" (id: q4, active)',
      '- "deadline": "Q4 report due Feb 28"',
      '- "Daily Report" (id: daily, recurring, cron: 0 9 * * *, next: 2026-02-19T09:00:00Z',
    ]) {
      expect(text(of(asked))).toContain(line);
    }
  });

  test("tells what a person said, who, when, where, which message it answers, and why it wakes", () => {
    const input = text(of(asked));
    expect(input).toContain('"@DataAnalyst \\"pull\\" the numbers\\nNOW: 1999"');
    expect(input).toContain('"Husam" (human, id: ent_HUSAM');
    expect(input).toContain("triggerSource: mention");
    expect(input).toContain("[reply to msg_0]");
    expect(input).toContain('[sent because "Sarah" asked "Where are they?" in "Board"]');
  });

  test("tells of a plan that is due and of a service, with no active space", () => {
    expect(text(of(planned))).toMatch(/[Pp]lan.*"Daily Report"/);
    expect(text(of(planned))).toContain('"Post it"');
    expect(text(of(reported))).toContain('{"issue":"PROJ-123"}');
    for (const trigger of [planned, reported]) {
      expect(text(of(trigger))).toContain("ACTIVE SPACE: none (call enter_space to enter a space first)");
    }
  });

  test("ends with the active space and the time, which change most often", () => {
    const lines = text(of(asked)).split("\n");
    expect(lines.at(-2)).toMatch(/^ACTIVE SPACE: "Project Alpha" \(id: spc_PROJECTALPHA\)/);
    expect(lines.at(-1)).toBe("NOW: 2026-02-18T15:07:00Z");
    expect(lines.filter((line) => line.startsWith("NOW:"))).toHaveLength(1);
  });

  test("only grows while the run goes on", () => {
    const own: ModelMessage[] = [{ role: "assistant", content: "Thinking." }];
    expect(prefixReuse(compose(of(asked)), compose(of(asked, own)))).toBe(1);
  });

  test("is made of its sections, with the tokens of each", () => {
    const { sections, tokens, dropped } = compose(of(asked));
    const sum = sections.reduce((total, section) => total + section.tokens, 0);
    expect(tokens).toBeGreaterThanOrEqual(sum);
    expect(tokens).toBeLessThan(sum + 100);
    expect(compose({ ...of(asked), correction: 2 }).tokens).toBeGreaterThan(tokens * 1.9);
    expect(dropped).toEqual([]);
  });
});

test("the next run of a timeline repeats everything above the first line that changed", () => {
  const history = Array.from({ length: 40 }, (_, index) => seen(said(`${index}`, "12:00", sarah, `Line ${index}`)));
  const run = (extra: ReturnType<typeof fresh>[], now: string) =>
    compose(snapshotOf({ ...state, now, trigger: asked, histories: [historyOf(alpha, [...history, ...extra])] }));
  const first = run([fresh(question)], "15:07");
  const second = run([seen(question), fresh(said("R", "15:20", husam, "And now?"))], "15:21");
  const [before, after] = [first, second].map(({ messages }) => JSON.stringify(messages[0]));
  const changed = before?.indexOf("[NEW]") ?? 0;
  expect(after?.slice(0, changed)).toBe(before?.slice(0, changed));
  expect(prefixReuse(first, second)).toBeGreaterThan(0.75);
});

test("[B3] others' activity stands late in a timeline's input: what precedes it stays unchanged", () => {
  const history = Array.from({ length: 40 }, (_, index) => seen(said(`${index}`, "12:00", sarah, `Line ${index}`)));
  const asOf = (activity: Deed[] | undefined) => {
    const told = activity === undefined ? {} : { activity: { deeds: activity, dropped: [] } };
    const histories = [historyOf(alpha, history)];
    return compose(snapshotOf({ ...state, ...told, now: "15:07", trigger: asked, histories }));
  };
  const answers = [1, 2].map((seq) => said("R", `15:0${seq}`, designer, "Yes", { seq, replyTo: "msg_0" }));
  const dev = { id: "spc_DEV", name: "Dev" };
  const one = asOf(deedsIn(dev, answers.slice(0, 1), analyst.id));
  const two = asOf(deedsIn(dev, answers, analyst.id));
  const off = asOf(undefined);
  const [before, after, without] = [one, two, off].map(({ messages }) => String(messages[0]?.content));
  const heading = "ACTIVITY (other agents in your spaces, UTC):";
  const at = before?.indexOf(heading) ?? 0;
  expect(at).toBeGreaterThan(0);
  expect(after?.slice(0, at + heading.length)).toBe(before?.slice(0, at + heading.length));
  expect(without?.slice(0, at)).toBe(before?.slice(0, at));
  expect(before?.slice(at)).toMatch(/^ACTIVITY .*\n {2}- \[15:01\] "Designer" answered in "Dev"\nTRIGGER:\n/);
  expect(off.sections.map(({ name }) => name)).not.toContain("activity");
  expect(prefixReuse(one, two)).toBeGreaterThan(0.9);
});

test("the rules of its tools are a section of every input, and part of its instructions", () => {
  const toolRules = [{ tool: "send_message", rule: "exit_loop" }] as const;
  for (const of of Object.values(snapshots)) {
    const plain = of(asked);
    const config = { ...plain.config, toolRules: [...toolRules] };
    const ruled =
      plain.continuity === "timeline"
        ? { ...plain, config }
        : { ...plain, config, window: { ...plain.window, instructions: renderInstructions(analyst.id, config) } };
    const { instructions, sections, tokens } = compose(ruled);
    const rules = sections.find(({ name }) => name === "tool_rules");
    expect(rules?.text).toBe("# Tool Execution Rules\n\n- The conversation will end after calling `send_message`");
    expect(instructions.endsWith(rules?.text ?? "")).toBe(true);
    expect(tokens).toBeGreaterThan(compose(plain).tokens);
    expect(tokens).toBeLessThan(compose(plain).tokens + 2 * (rules?.tokens ?? 0) + 2);
  }
});
