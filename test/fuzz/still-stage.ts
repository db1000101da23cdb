import { adminKey } from "../support/house.ts";
import { openStage, type Stage } from "./stage.ts";
import { WatchedState } from "./watched-state.ts";

/**
 * A stage that only gets what was refused elsewhere. Nothing happens there by itself, so that every row of every
 * object can be compared after each refusal. What is taken there after all ends it: the next is refused on a new one.
 */
export class StillStage {
  #open: { stage: Stage; state: WatchedState } | undefined;
  readonly #prepare: (stage: Stage) => Promise<unknown>;
  /** How many refusals were compared. */
  compared = 0;

  /** `prepare` does before each input what is no part of it. */
  constructor(prepare: (stage: Stage) => Promise<unknown> = () => Promise.resolve()) {
    this.#prepare = prepare;
  }

  /** `isRefused` sends what was refused before. Answers the tables that it changed all the same. */
  async changedBy(isRefused: (stage: Stage) => Promise<boolean>): Promise<string[]> {
    this.#open ??= await opened();
    const { stage, state } = this.#open;
    await this.#prepare(stage);
    await state.look();
    if (!(await isRefused(stage))) {
      this.#open = undefined;
      return [];
    }
    this.compared += 1;
    return state.look();
  }
}

/** Whether an answer is a refusal; reads it to its end. */
export const isRefusal = async (answer: Promise<Response | undefined>): Promise<boolean> => {
  const response = await answer;
  response?.webSocket?.accept();
  response?.webSocket?.close();
  await response?.body?.cancel();
  return response !== undefined && response.status >= 400;
};

/** Once what its setting up set off has ended: its messages are delivered, and the index has heard of them. */
const opened = async (): Promise<{ stage: Stage; state: WatchedState }> => {
  const stage = await openStage(adminKey);
  const state = await WatchedState.of(stage, "all");
  for (let quiet = 0; quiet < 3; ) {
    await scheduler.wait(10);
    quiet = (await state.look()).length === 0 ? quiet + 1 : 0;
  }
  return { stage, state };
};
