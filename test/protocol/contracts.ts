import type { AgentRpc } from "../../src/protocol/agent-rpc.ts";
import type { Delivery, SpaceRpc, WorkspaceRpc } from "../../src/protocol/rpc.ts";
import type { Outcome } from "../../src/shared/errors.ts";
import type * as last from "./last-release.golden.ts";

/**
 * RPC contracts are additive (L14). The compiler checks that today's actors offer what the last release asks and reads,
 * and that the last release's actors offer what today's do. `npm run check` fails where they do not fit.
 */
type Calls<Methods> = {
  [Name in keyof Methods]: Methods[Name] extends (...asked: infer Asked) => Promise<Outcome<infer Value>>
    ? (...asked: Asked) => Value
    : never;
};
type Today = { workspace: Calls<WorkspaceRpc>; space: Calls<SpaceRpc>; agent: Calls<AgentRpc> };

/** Calls that may differ, and why nothing breaks by it. */
type Differs = {
  today: /** `Exposure` is answered where `readable` was passed, which the last release does not. */
    | "updateBlock"
    | "shareBlock"
    /** The last release reads nothing of the answer. */
    | "follow"
    /** A compartment of the last release takes an answer that it does not know as `day`. */
    | "leaseTokens";
  last:
    | "addKey" // A key of a workspace of before has no scopes: the route sees that and takes it back.
    | "noteBudget"; // It keeps the notice as it comes.
};

type Fits<_Needed, _Given extends _Needed> = true;
type Both<One, Other, But> = Pick<One, Exclude<keyof One & keyof Other, But>>;
type New<Kind extends keyof Today, Last> = Exclude<keyof Today[Kind], keyof Last>;

type Held = [
  // The last release asks today's actors.
  Fits<Omit<last.workspace, Differs["today"]>, Today["workspace"]>,
  Fits<Omit<last.space, Differs["today"]>, Today["space"]>,
  Fits<Omit<last.agent, Differs["today"]>, Today["agent"]>,
  Fits<Delivery, last.delivery>,
  // Today's actors ask those of the last release.
  Fits<Both<Today["workspace"], last.workspace, Differs["last"]>, last.workspace>,
  Fits<Both<Today["space"], last.space, Differs["last"]>, last.space>,
  Fits<Both<Today["agent"], last.agent, Differs["last"]>, last.agent>,
  Fits<last.delivery, Delivery>,
];

/**
 * What becomes of a question that an object of the last release cannot answer. `asked as before`: `protocol/last-release.ts`.
 * `job`: it is asked again until it can. `refused`: the route, or the tool, answers `unavailable`. `left out`: nothing needs it.
 */
type Fallback = Held extends true[] ? "asked as before" | "job" | "refused" | "left out" : never;

export const ofWorkspace: Record<New<"workspace", last.workspace>, Fallback> = {
  ...{ credentialUntil: "asked as before", admitToken: "asked as before", noteAudit: "job", register: "job" },
  /** Only a workspace of this release has its agents ask. Until it is there again, their runs rest. */
  leaseOfDay: "refused",
  ...{ auth: "refused", putAuth: "refused", deleteAuth: "refused", entityOfSubject: "refused", signOut: "refused" },
  ...{ keys: "refused", updateKey: "refused", rollKey: "refused", secrets: "refused", audit: "refused" },
  limits: "asked as before",
  lineOf: "refused",
  ...{ setLimits: "refused", dismissSpace: "refused", beginReseal: "refused", reseal: "refused" },
  ...{ overview: "refused", suspend: "refused", end: "refused", registered: "refused" },
  ...{ report: "left out", reported: "refused", noteUsage: "job", usage: "refused" },
  ...{ addEndpoint: "refused", endpoints: "refused", updateEndpoint: "refused", rollEndpoint: "refused" },
  ...{ deleteEndpoint: "refused", endpointFailed: "job", toldTo: "job" },
  ...{ beginErasure: "refused", erasure: "refused", erasures: "refused", forgetAnswers: "refused" },
};
export const ofSpace: Record<New<"space", last.space>, Fallback> = {
  ...{ editMessage: "refused", search: "refused", asked: "refused", deleteMessage: "refused" },
  ...{
    attend: "job",
    setRetention: "job",
    setEndpoints: "job",
    toldTo: "job",
    forgetOrigin: "job",
    noteTold: "job",
    proveAgain: "job",
    setSuspended: "job",
    erase: "job",
  },
};
export const ofAgent: Record<New<"agent", last.agent>, Fallback> = {
  ...{
    forgetMessages: "job",
    forgetSpace: "job",
    redact: "job",
    reseal: "job",
    setSuspended: "job",
    meterTokens: "job",
    takeBackBlocks: "job",
    isImporting: "job",
  },
  ...{ proveAgain: "job", confidentialSpaces: "refused", secretUses: "refused", related: "left out" },
  ...{ claimRun: "refused", callInRun: "refused", speakInRun: "refused", endRun: "refused", renewClaim: "refused" },
  toolset: "refused",
};
