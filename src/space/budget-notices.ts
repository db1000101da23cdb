import type { WelcomeFrame } from "../protocol/events.ts";
import type { BudgetNotice } from "../protocol/rpc.ts";
import type { MemberRow } from "./members.ts";
import { memberIn, spaceIn } from "./rights.ts";
import type { SpaceServices } from "./services.ts";

/** Agents that have no tokens left today, for everybody or for one member. */
const everybody = "";

/** An agent tells it of itself. It is an event of the log once for each day and person; of who is no member nothing is told. */
export const noteBudget = (
  services: SpaceServices,
  workspaceId: string,
  agentId: string,
  { resetsAt, personId }: BudgetNotice,
): void => {
  spaceIn(services, workspaceId);
  const agent = memberIn(services, agentId);
  const told = agent.spent?.resetsAt === resetsAt ? agent.spent.told : {};
  if (told[personId ?? everybody] !== undefined) return;
  if (personId !== undefined && !services.members.find(personId)) return;
  services.record((append) => {
    const { seq } = append({ type: "agent.budget_exhausted", entityId: agentId, personId, resetsAt });
    services.members.change(agent, { spent: { resetsAt, told: { ...told, [personId ?? everybody]: seq } } });
  });
};

/** What of it holds now: a client that was not there is told so when it connects. */
export const spentBy = (members: readonly MemberRow[], now: number): WelcomeFrame["spent"] => {
  const spent = members.flatMap(({ entityId, spent: last }) => {
    if (!last || Date.parse(last.resetsAt) <= now) return [];
    const { resetsAt, told } = last;
    return Object.entries(told).map(([personId, cursor]) => ({
      ...{ entityId, resetsAt, cursor },
      ...(personId === everybody ? {} : { personId }),
    }));
  });
  return spent.length === 0 ? undefined : spent;
};
