import type { AgentMethods } from "../../protocol/agent-rpc.ts";
import type { Database } from "../../shared/database.ts";
import type { Jobs } from "../../timers/jobs.ts";
import type { Timers } from "../../timers/timers.ts";
import type { Loop } from "../run/loop.ts";
import type { RunServices } from "../run/run-services.ts";

/** An agent that was created, awake: its services and what works on them. */
export type AgentRuntime = {
  db: Database;
  services: RunServices;
  timers: Timers;
  loop: Loop;
  jobs: Jobs;
  /** Set once the agent is being deleted. */
  isEnding?: boolean;
  /** Does what the timer `name` is set for. */
  due(name: string): Promise<void>;
  /** The config or a secret changed: runs that failed or wait may go on now. */
  reconsider(): void;
  /** The workspace goes on after a suspension: so does all that rested. */
  resume(): void;
  /** Ends all work; resolves when nothing more of the agent can appear. */
  stop(): Promise<void>;
};

/** Methods of the agent's RPC as functions of its runtime. `agent.ts` checks the workspace and makes the Outcome. */
export type Area<Names extends keyof AgentMethods> = {
  [Name in Names]: (
    runtime: AgentRuntime,
    ...args: Parameters<AgentMethods[Name]>
  ) => ReturnType<AgentMethods[Name]> | Promise<ReturnType<AgentMethods[Name]>>;
};
