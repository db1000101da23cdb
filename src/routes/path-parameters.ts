import * as z from "zod";
import type { IdPrefix, OwnedPrefix } from "../protocol/ids.ts";
import { Label } from "../protocol/text.ts";
import { ColloquyError } from "../shared/errors.ts";
import type { Ids } from "../shared/ids.ts";

/** An id in a path. `requireIssued` checks it, so its schema only describes it. */
export const pathId = (prefix: IdPrefix, what: string) =>
  z.string().meta({ description: `The id of ${what}`, example: `${prefix}_…` });

/** A name in a path that the caller chose. */
export const pathLabel = (description: string, example: string) => Label.meta({ description, example });

/** `or`: other kinds of ids that may stand there. */
type IssuedId =
  | { what: string; prefix: IdPrefix; or?: IdPrefix[] }
  | { what: string; prefix: OwnedPrefix; within: string };

/** `within` names the parameter of the agent or the space that the thing lives in; an agent's is the mind that is asked. */
const issuedIds: Record<string, IssuedId> = {
  workspaceId: { prefix: "wsp", what: "the workspace" },
  agentId: { prefix: "ent", what: "the agent" },
  otherAgentId: { prefix: "ent", what: "the agent that it is shared with" },
  entityId: { prefix: "ent", what: "the entity" },
  erasureId: { prefix: "ent", or: ["spc", "wsp"], what: "what is erased" },
  spaceId: { prefix: "spc", what: "the space" },
  keyId: { prefix: "key", what: "the key" },
  endpointId: { prefix: "ep", what: "the endpoint" },
  deviceId: { prefix: "dev", what: "the device" },
  toolCallId: { prefix: "tc", what: "the tool call" },
  runId: { prefix: "run", what: "the run", within: "agentId" },
  eventId: { prefix: "evt", what: "the event", within: "agentId" },
  messageId: { prefix: "msg", what: "the message", within: "spaceId" },
  hookId: { prefix: "hook", what: "the hook", within: "agentId" },
  archivalId: { prefix: "arch", what: "the archival entry", within: "agentId" },
};

/** Every name that may stand in a path. */
const pathParameters: Record<string, z.ZodType<string>> = {
  ...Object.fromEntries(Object.entries(issuedIds).map(([name, { prefix, what }]) => [name, pathId(prefix, what)])),
  key: pathLabel("The memory's key", "favourite_tea"),
  goalId: pathLabel("The goal's id, the caller's choice", "q4"),
  planId: pathLabel("The plan's id, the caller's choice", "daily-report"),
  label: pathLabel("The block's label", "notes"),
  name: pathLabel("The secret's name", "OPENAI_API_KEY"),
};

/** The schema of a path's parameters; `described` takes the place of the usual ones. */
export const pathSchema = (path: string, described: Record<string, z.ZodType<string>> = {}) => {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const schemas = { ...pathParameters, ...described };
  return z.object(Object.fromEntries(names.map((name) => [name, schemas[name] ?? z.never()])));
};

/** Whether every parameter of a path is an id, which `requireIssued` checks. */
export const holdsIdsOnly = ({ shape }: z.ZodObject): boolean => Object.keys(shape).every((name) => name in issuedIds);

/**
 * Refuses a path with an id that was not issued here, before any actor is asked (S6). A compartment's own id counts as
 * such: it is reached by its agent and `?space=` alone, which checks who asks (C19).
 */
export const requireIssued = (ids: Ids, parameters: Record<string, string>, mindId?: string): void => {
  const owners: Record<string, string | undefined> = { ...parameters, agentId: mindId ?? parameters.agentId };
  for (const name in parameters) {
    const issued = issuedIds[name];
    const id = parameters[name] ?? "";
    if (!issued) continue;
    const others = "or" in issued ? issued.or : undefined;
    const isHere =
      [issued.prefix, ...(others ?? [])].some((prefix) => ids.isIssued(prefix, id)) &&
      (issued.prefix !== "ent" || !ids.isCompartment(id)) &&
      (!("within" in issued) || ids.ownerOf(issued.prefix, id) === owners[issued.within]);
    if (!isHere) throw new ColloquyError("not_found", `There is nothing with this ${name}.`);
  }
};
