import type { ActorNamespace } from "../../env.ts";
import type { AgentRpc } from "../../protocol/rpc.ts";
import type { Clock } from "../../shared/clock.ts";
import { settledWithin } from "../../shared/timeouts.ts";
import { describeWaitMs, descriptionsKeptMs } from "../bounds.ts";

type Known = { description: string; until: number };

/** The agents' own descriptions. They are asked for, and kept in memory for a while. */
export class Descriptions {
  readonly #agents: ActorNamespace<Pick<AgentRpc, "describe">>;
  readonly #clock: Clock;
  #known = new Map<string, Known>();

  constructor(agents: ActorNamespace<Pick<AgentRpc, "describe">>, clock: Clock) {
    this.#agents = agents;
    this.#clock = clock;
  }

  /** By id; without those that did not answer in time. */
  async of(workspaceId: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const now = this.#clock.now();
    this.#known = new Map([...this.#known].filter(([id, { until }]) => until > now && ids.includes(id)));
    const missing = ids.filter((id) => !this.#known.has(id));
    if (missing.length > 0) {
      await settledWithin(describeWaitMs, Promise.allSettled(missing.map((id) => this.#ask(workspaceId, id))));
    }
    return new Map([...this.#known].map(([id, { description }]) => [id, description]));
  }

  async #ask(workspaceId: string, id: string): Promise<void> {
    const described = await this.#agents.getByName(id).describe(workspaceId);
    if (!described.ok) return;
    const { description } = described.value.config;
    this.#known.set(id, { description, until: this.#clock.now() + descriptionsKeptMs });
  }
}
