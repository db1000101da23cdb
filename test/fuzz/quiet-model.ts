import { call, installModel, scriptedModel, step } from "../support/scripted-model.ts";

/** Has every agent look at what wakes it, and say nothing. */
export const quietModel = (): void => {
  installModel(
    scriptedModel(({ tools }) => (tools?.some(({ name }) => name === "skip") ? step(call("skip", {})) : step())),
  );
};
