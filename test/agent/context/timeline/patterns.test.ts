import { expect, test } from "vitest";
import type { KnownSpace } from "../../../../src/agent/context/agent-state.ts";
import { compose } from "../../../../src/agent/context/compose.ts";
import type { HistoryEntry } from "../../../../src/agent/context/timeline/history.ts";
import type { Message } from "../../../../src/protocol/message.ts";
import {
  agent,
  ahmad,
  called,
  did,
  fresh,
  goal,
  historyOf,
  human,
  husam,
  memory,
  type Situation,
  said,
  sarah,
  seen,
  snapshotOf,
  space,
  triggerOf,
  type Who,
} from "../cast.ts";
import { readable } from "../readable.ts";

/** Seed 002's conversation patterns: what the agent reads in the last run of each, `last` being new. */
const reads = (
  self: Who,
  space: KnownSpace,
  now: string,
  earlier: HistoryEntry[],
  last: Message,
  more: Partial<Situation> = {},
): string => {
  const trigger = triggerOf(last, space, "every_message");
  const histories = [historyOf(space, [...earlier, fresh(last)])];
  const snapshot = snapshotOf({ self, now, spaces: [space], trigger, histories, ...more });
  return readable(compose(snapshot), "instructions-timeline-simple.golden.txt");
};

test("pattern 1: the agent asked, a person answers", async () => {
  const bot = agent("DeployBot");
  const deployments = space("Deployments", sarah, bot);
  const yes = said("3", "14:05", sarah, "yes");
  const earlier = [
    seen(said("1", "14:00", sarah, "Deploy v2.1 to production")),
    seen(said("2", "14:00:20", bot, "I'll deploy v2.1. This affects 3 services. Confirm by replying yes.")),
  ];
  const input = reads(bot, deployments, "14:05:01", earlier, yes);
  await expect(input).toMatchFileSnapshot("./pattern-1-ask-and-answer.golden.txt");
});

test("pattern 2: back and forth, each turn a run", async () => {
  const guide = agent("Travel Guide");
  const trip = space("Tokyo trip", husam, guide);
  const budget = said("3", "10:02", husam, "$150");
  const earlier = [
    seen(said("1", "10:00", husam, "Find me hotels in Tokyo")),
    seen(said("2", "10:00:10", guide, "What's your budget per night?")),
  ];
  const input = reads(guide, trip, "10:02:01", earlier, budget, { trigger: triggerOf(budget, trip, "auto") });
  await expect(input).toMatchFileSnapshot("./pattern-2-back-and-forth.golden.txt");
});

test("pattern 3: agents discuss, each reads the whole of it", async () => {
  const [architect, security, devops] = [agent("Architect"), agent("SecurityBot"), agent("DevOps")];
  const room = space("Architecture", husam, architect, security, devops);
  const last = said(
    "6",
    "09:06",
    devops,
    "I can set up Keycloak — supports OAuth2 + PKCE out of the box. ETA: 2 days.",
  );
  const earlier = [
    seen(said("1", "09:00", husam, "We need to redesign the auth system")),
    seen(said("2", "09:01", architect, "I'd suggest OAuth2 with JWT. Gives us SSO and token refresh.")),
    seen(said("3", "09:01:30", security, "From security: use short-lived tokens (15 min) with refresh rotation.")),
    fresh(
      said(
        "4",
        "09:04",
        security,
        "OAuth2 is good. Add PKCE for public clients, store refresh tokens server-side only.",
      ),
    ),
  ];
  const input = reads(architect, room, "09:06:01", earlier, last);
  await expect(input).toMatchFileSnapshot("./pattern-3-discussion.golden.txt");
});

test("pattern 4: votes are counted in the history", async () => {
  const teller = agent("Teller");
  const team = space("Team", husam, ahmad, sarah, teller);
  const last = said("5", "12:30", husam, "Option A");
  const earlier = [
    seen(said("1", "12:00", husam, "Team vote: Option A or B?")),
    seen(said("2", "12:00:15", teller, "Team vote: should we go with Option A or B? Everyone please reply.")),
    seen(said("3", "12:10", ahmad, "Option A")),
    seen(said("4", "12:20", sarah, "Option B")),
  ];
  const input = reads(teller, team, "12:30:01", earlier, last);
  await expect(input).toMatchFileSnapshot("./pattern-4-votes.golden.txt");
});

test("pattern 5: memories and goals bridge the runs of a long piece of work", async () => {
  const reporter = agent("Reporter");
  const finance = human("Finance");
  const room = space("Q4", husam, finance, reporter);
  const budget = said("4", "16:00", finance, "Budget is $500K");
  const note = "waiting for budget from Finance. Data so far: revenue $2.1M, users 45K";
  const earlier = [
    seen(said("1", "11:00", husam, "Generate the Q4 report")),
    seen(
      called("2", "11:00:10", reporter, {
        id: "tc_1",
        name: "fetchRevenue",
        input: { quarter: "Q4" },
        output: { revenue: 2_100_000, users: 45_000 },
        status: "complete",
      }),
    ),
    seen(
      said("3", "11:00:20", reporter, "Started the Q4 report. I need budget numbers from Finance — can someone share?"),
    ),
    did("11:00:22", "set_memories", { memories: [{ key: "q4_report", value: note }] }),
    did("11:00:23", "set_goals", { goals: [{ id: "q4", description: "Complete Q4 report", status: "active" }] }),
  ];
  const input = reads(reporter, room, "16:00:01", earlier, budget, {
    goals: [goal("q4", "Complete Q4 report")],
    memories: [memory("q4_report", note)],
  });
  await expect(input).toMatchFileSnapshot("./pattern-5-long-work.golden.txt");
});
