import type { WelcomeFrame } from "../protocol/events.ts";
import type { BudgetNotice } from "../protocol/rpc.ts";
import type { MemberRow } from "./members.ts";
import { memberIn, spaceIn } from "./rights.ts";
import type { ToldBudget } from "./schema.ts";
import type { SpaceServices } from "./services.ts";

/** Agents that have no tokens of the day or runs of the hour left, for everybody or for one member. */

/** The agent's notices that still hold. */
const toldOf = ({ spent }: MemberRow, now: number): ToldBudget[] =>
  Array.isArray(spent) ? spent.filter(({ resetsAt }: ToldBudget) => Date.parse(resetsAt) > now) : [];

/** An agent tells it of itself. It is an event of the log once for each budget, time and person; of who is no member nothing is told. */
export const noteBudget = (
  services: SpaceServices,
  workspaceId: string,
  agentId: string,
  { resetsAt, personId, budget }: BudgetNotice,
): void => {
  spaceIn(services, workspaceId);
  const agent = memberIn(services, agentId);
  const told = toldOf(agent, services.clock.now());
  if (told.some((one) => one.personId === personId && one.resetsAt === resetsAt && one.budget === budget)) return;
  if (personId !== undefined && !services.members.find(personId)) return;
  services.record((append) => {
    const { seq } = append({ type: "agent.budget_exhausted", entityId: agentId, personId, resetsAt, budget });
    services.members.change(agent, { spent: [...told, { personId, resetsAt, budget, seq }] });
  });
};

/** The notices that still hold, for a client that connects and was not there when they were told. */
export const spentBy = (members: readonly MemberRow[], now: number): WelcomeFrame["spent"] => {
  const spent = members.flatMap((member) =>
    toldOf(member, now).map(({ seq: cursor, ...notice }) => ({ entityId: member.entityId, cursor, ...notice })),
  );
  return spent.length === 0 ? undefined : spent;
};
