import { isRefusal } from "../../models/failure.ts";
import { resolveModel } from "../../models/models.ts";
import { fault } from "../../shared/fault.ts";
import type { Composed } from "../context/sections.ts";
import { type Generation, generate } from "./generate.ts";
import type { LiveRun } from "./run-services.ts";
import type { Speech } from "./speech.ts";

/** A step that is to be thought: its place in the run, its input, and where its words are shown as they come. */
export type Asked = { index: number; composed: Composed; maxOutputTokens: number; speech: Speech };

/** Whoever thinks a run's steps. All else of a step is the same for everybody. */
export type Thinker = {
  modelId: string;
  /** One generation. Nothing of it is stored yet. */
  generate(asked: Asked): Promise<Generation>;
  /** Whether somebody is there to think the next step: a guest's program may be away. */
  isThere(): boolean;
  /** An empty first answer is asked for once more, and is then silence (R4). */
  repeatsSilence: boolean;
  /** Whether this error of `generate` says that nothing was thought, so nothing is billed. */
  isUnbilled(error: unknown): boolean;
};

/** The agent's own model. */
export const modelThinker = async ({ services, run, signal, progressed }: LiveRun): Promise<Thinker> => {
  const { config } = services.identity.get();
  const model = await resolveModel(config.model, {
    env: services.env,
    unsealSecret: (name, use) => services.identity.unsealSecret(name, { ...use, cause: run.id }),
  });
  return {
    modelId: model.modelId,
    isThere: () => true,
    repeatsSilence: true,
    isUnbilled: isRefusal,
    generate: ({ index, ...asked }) =>
      generate({
        ...{ ...asked, model, signal },
        temperature: services.identity.get().config.model.temperature,
        clock: services.clock,
        callId: (call) => services.ids.deriveOwned("tc", services.identity.mindId(), run.id, index, call),
        progressed: () => {
          progressed();
          fault("agent.mid-stream", services.object);
        },
      }),
  };
};
