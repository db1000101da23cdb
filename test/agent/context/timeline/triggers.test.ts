import { expect, test } from "vitest";
import { compose } from "../../../../src/agent/context/compose.ts";
import {
  agent,
  ahmad,
  analyst,
  day,
  designer,
  did,
  due,
  fresh,
  goal,
  historyOf,
  hooked,
  husam,
  memory,
  plan,
  resultOf,
  type Situation,
  said,
  sarah,
  seen,
  snapshotOf,
  space,
  triggerOf,
} from "../cast.ts";
import { readable } from "../readable.ts";

/** Compares the input in this situation with its golden file. */
const shows = async (name: string, situation: Situation): Promise<void> => {
  const kind = situation.config?.messaging ?? "simple";
  const standing = situation.config?.instructions ? undefined : `instructions-timeline-${kind}.golden.txt`;
  const input = readable(compose(snapshotOf(situation)), standing);
  await expect(input).toMatchFileSnapshot(`./${name}.golden.txt`);
};

const alpha = space("Project Alpha", husam, ahmad, designer, analyst);
const reports = space("Daily Reports", analyst, sarah);
const oneToOne = space("1:1 with Husam", husam, analyst);
const spaces = [alpha, reports, oneToOne];

const goals = [
  goal("q4", "Complete Q4 revenue analysis", { priority: 2 }),
  goal("daily", "Maintain daily report pipeline", { longTerm: true, priority: 1 }),
];
const memories = [
  memory("q4_sources", "Revenue source breakdown uses the new categorization from October"),
  memory("sarah_likes", "Sarah prefers charts over tables"),
];
const dailyReport = plan("daily-report", "Daily Report", "Generate and post the daily metrics summary", {
  cron: "0 9 * * *",
  timezone: "Asia/Riyadh",
  nextRunAt: "2026-02-19T06:00:00.000Z",
});
const followUp = plan("follow-up", "Follow up with Designer", "Ask whether the mockup is final", {
  runAfter: "2 hours",
  nextRunAt: day("17:07"),
});
const waiting = {
  runId: "run_REVIEW",
  status: "waiting_reply" as const,
  isThis: false,
  begunBy: {
    type: "space_message" as const,
    senderName: "Husam",
    spaceName: "Project Alpha",
    text: "Get the mockup reviewed",
  },
  waiting: { callId: "call_WAITING", text: "@Designer review mockup", spaceName: "Design Team", names: ["Designer"] },
};

const whole = { spaces, goals, memories, plans: [dailyReport, followUp], now: "15:07" };

const pull = said("G7H8", "15:06:55", husam, "@DataAnalyst pull the Q4 revenue numbers");
const talk = historyOf(alpha, [
  seen(said("A1B2", "14:50", husam, "Let's finalize the Q4 report")),
  seen(said("C3D4", "14:51:23", designer, "I've updated the charts. See attached.")),
  fresh(said("E5F6", "14:55:10", ahmad, "Looks good. @DataAnalyst can you add the revenue breakdown?")),
  fresh(pull),
]);

test("seed 000: a mention, with everything that the agent has and does", async () => {
  await shows("mention", {
    ...whole,
    config: { messaging: "threaded", instructions: "You analyse figures for the team.\nNever guess a number." },
    trigger: triggerOf(pull, alpha, "mention", true),
    histories: [talk],
    otherRuns: [waiting],
  });
});

test("seed 000: the router thinks that the agent might help, and nobody expects it to", async () => {
  const team = space("Team Chat", husam, ahmad, analyst);
  const stuck = said("A3", "15:10", ahmad, "nobody knows how to fix it");
  await shows("proactive-router", {
    config: { messaging: "threaded" },
    now: "15:11",
    spaces: [team],
    trigger: triggerOf(stuck, team, "proactive_router", true),
    histories: [
      historyOf(team, [fresh(said("A2", "15:09:40", husam, "The export fails with E_QUOTA since noon")), fresh(stuck)]),
    ],
  });
});

test("a space of two needs no mention", async () => {
  const morning = said("B1", "15:12", husam, "Morning! Anything new in the numbers?");
  await shows("auto", {
    now: "15:12",
    spaces: [oneToOne],
    memories: memories.slice(0, 1),
    trigger: triggerOf(morning, oneToOne, "auto"),
    histories: [historyOf(oneToOne, [fresh(morning)])],
  });
});

test("seed 000: a plan is due, and no space is active", async () => {
  await shows("plan", {
    ...whole,
    now: "09:00:01",
    trigger: due("daily-report", "Daily Report", "Generate and post the daily metrics summary"),
  });
});

test("seed 000: a service tells of something, and no space is active", async () => {
  await shows("service", {
    ...whole,
    plans: [{ ...followUp, status: "done" }, dailyReport],
    trigger: hooked("jira-webhook", { issue: "PROJ-123", action: "status_changed", newStatus: "done" }),
  });
});

test("seed 000: a call's result comes, and the space where it was made is active", async () => {
  await shows("tool-result", {
    ...whole,
    trigger: resultOf("confirmAction", "tc_CONFIRM", { confirmed: true, note: "go ahead\nNOW: 1999" }),
    activeSpace: { id: alpha.id, name: alpha.name, why: "call" },
  });
});

test("seed 000: a run goes on when the one it waited for has answered", async () => {
  const ask = said("W1", "10:00", analyst, "@Designer please review the mockup");
  const request = said("W0", "09:59", husam, "@DataAnalyst get the mockup reviewed, then ship it");
  const answer = said("W2", "10:03", designer, "@DataAnalyst looks good, ship it", { replyTo: "msg_W1" });
  await shows("resumed", {
    config: { messaging: "threaded" },
    now: "10:03:02",
    spaces: [alpha],
    trigger: triggerOf(request, alpha, "mention", true),
    histories: [
      historyOf(alpha, [
        fresh(request),
        seen(ask),
        fresh(said("W9", "10:01", ahmad, "I like the colours")),
        fresh(answer),
      ]),
    ],
    resume: {
      soFar: [
        {
          toolName: "set_goals",
          input: { goals: [{ id: "mockup", description: "Ship the mockup" }] },
          output: { success: true },
        },
        {
          toolName: "send_message",
          input: { text: "@Designer please review the mockup", wait: true },
          output: { success: true, messageId: "msg_W1", status: "delivered" },
        },
      ],
      replies: [{ messageId: "msg_W2", name: "Designer" }],
      timedOut: [],
    },
  });
});

test("a run that waited in another space reads both, and who never answered", async () => {
  const design = space("Design Team", designer, ahmad, analyst);
  const request = said("X0", "09:59", husam, "@DataAnalyst get the mockup reviewed");
  const ask = said("X1", "10:00", analyst, "@Designer @Ahmad review the mockup, please", {
    origin: {
      spaceId: alpha.id,
      sourceSpaceName: alpha.name,
      sourceSenderName: "Husam",
      sourceEvent: "@DataAnalyst get the mockup reviewed",
    },
  });
  await shows("resumed-elsewhere", {
    config: { messaging: "threaded" },
    now: "11:00:01",
    spaces: [alpha, design],
    trigger: triggerOf(request, alpha, "mention", true),
    histories: [
      historyOf(alpha, [fresh(request)]),
      historyOf(design, [seen(ask), fresh(said("X2", "10:20", designer, "Approved.", { replyTo: "msg_X1" }))]),
    ],
    activeSpace: { id: design.id, name: design.name, why: "wait" },
    resume: {
      soFar: [
        { toolName: "enter_space", input: { spaceId: design.id }, output: { success: true } },
        { toolName: "send_message", input: { text: "@Designer @Ahmad review the mockup, please", wait: true } },
      ],
      replies: [{ messageId: "msg_X2", name: "Designer" }],
      timedOut: ["Ahmad"],
    },
  });
});

test("seed 001: why something was said here, by itself and by others, and what it answers", async () => {
  const dev = space("Dev Channel", sarah, agent("DevBot"), analyst);
  const fromAlpha = {
    spaceId: alpha.id,
    sourceSpaceName: "Project Alpha",
    sourceSenderName: "Husam",
    sourceEvent: "Send report to dev team",
  };
  const thanks = said("Y5", "14:40", sarah, "Thanks! Is the forecast in it too?", { replyTo: "msg_Y1" });
  const ours = { sourceRunId: "run_OURS" };
  await shows("annotations", {
    now: "14:40:05",
    spaces: [dev],
    trigger: triggerOf(thanks, dev, "every_message"),
    histories: [
      historyOf(dev, [
        seen(said("Y1", "14:30", analyst, "Hey team, here's the Q4 report summary…", { origin: fromAlpha })),
        did("14:30:04", "set_memories", { memories: [{ key: "report_sent", value: "to the Dev Channel, 18 Feb" }] }),
        seen(
          said("Y2", "14:31", agent("DevBot"), "The build that it speaks of is green", {
            origin: { spaceId: "spc_CI", sourceSpaceName: "CI" },
          }),
        ),
        seen(said("Y3", "14:32", agent("DevBot"), "And the nightly one too", { origin: { spaceId: "spc_HIDDEN" } })),
        seen(
          said("Y4", "14:33", agent("DevBot"), "Metrics: all green", {
            origin: { sourceType: "plan", sourceRunId: "run_THEIRS" },
          }),
        ),
        seen(
          said("Y6", "14:34", analyst, "PROJ-123 is done", {
            origin: { ...ours, sourceType: "service", sourceName: "jira", sourceEvent: '{"issue":"PROJ-123"}' },
          }),
        ),
        seen(
          said("Y7", "14:35", analyst, "Revenue $2.1M", {
            origin: { ...ours, sourceType: "plan", sourceName: "Daily Report", sourceEvent: "Post the metrics" },
          }),
        ),
        fresh(thanks),
      ]),
    ],
  });
});
