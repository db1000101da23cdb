import { approval } from "./rules/approval.ts";
import { ask } from "./rules/ask.ts";
import { carryMessage } from "./rules/carry.ts";
import { greeting, help, identity, ping, thanks, time, whoIsHere } from "./rules/conversation.ts";
import { chart, explain, table } from "./rules/drawings.ts";
import { endGoal, listGoals, setGoal } from "./rules/goals.ts";
import { lists } from "./rules/lists.ts";
import { forget, recall, recallAll, recallWhat, remember } from "./rules/memory.ts";
import { remind } from "./rules/plans.ts";
import { choose, fillIn } from "./rules/questions.ts";
import { count, say, write } from "./rules/say.ts";
import { useNamed } from "./rules/use-tool.ts";
import { ownVote, votes } from "./rules/votes.ts";
import { whoSaid } from "./rules/who-said.ts";
import type { Rule } from "./turn.ts";

/** Every rule, in the order of asking: what repeats or carries words comes before what reads them. */
export const rules: Rule[] = [
  say,
  remind,
  useNamed,
  approval,
  choose,
  fillIn,
  chart,
  table,
  explain,
  ask,
  lists,
  whoSaid,
  remember,
  forget,
  setGoal,
  write,
  carryMessage,
  votes,
  endGoal,
  identity,
  help,
  count,
  time,
  whoIsHere,
  listGoals,
  recallAll,
  recall,
  recallWhat,
  ownVote,
  ping,
  thanks,
  greeting,
];
