import type { Served } from "../env/env.ts";
import type { AuditActor } from "../protocol/audit.ts";
import type { Endpoint } from "../protocol/endpoint.ts";
import type { EndpointRegistryMethods } from "../protocol/endpoint-rpc.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import { hostOf } from "../protocol/secret.ts";
import { ColloquyError } from "../shared/errors.ts";
import type { Audit } from "./audit.ts";
import type { WorkspaceRow } from "./registry.ts";
import type { WorkspaceServices } from "./services.ts";
import type { SpaceIndex } from "./space-index.ts";

const requireSpaces = (spaces: Pick<SpaceIndex, "isKnown">, ids: string[] | null | undefined): void => {
  const unknown = ids?.find((id) => !spaces.isKnown(id));
  if (unknown === undefined) return;
  throw new ColloquyError("unknown_reference", `${unknown} is no space of this workspace: name those that are there.`);
};

/** An endpoint was made, which is noted once however often it is asked for, or changed. */
const noteEndpoint = (
  audit: Audit,
  action: "endpoint.created" | "endpoint.changed",
  by: AuditActor,
  told: Endpoint,
) => {
  const { id, types, spaceIds, disabled } = told;
  const detail = { host: hostOf(told.url), types: types.join(" "), spaces: spaceIds?.join(" ") ?? "", isOn: !disabled };
  const once = action === "endpoint.created" ? { once: `${action} ${id}` } : {};
  audit.note({ action, actor: by, target: id, detail, ...once });
};

/** The workspace's answers about its endpoints, and to them. */
export const endpointAnswers: Served<
  Pick<WorkspaceRpc, keyof EndpointRegistryMethods>,
  WorkspaceServices & { row: WorkspaceRow }
> = {
  addEndpoint: ({ endpoints, spaces, audit }, asked, by) => {
    requireSpaces(spaces, asked.spaceIds);
    const added = endpoints.sealed(endpoints.add(asked));
    noteEndpoint(audit, "endpoint.created", by, added.endpoint);
    return added;
  },
  endpoints: ({ endpoints }) => endpoints.views(),
  updateEndpoint: ({ endpoints, spaces, audit }, id, changes, by) => {
    requireSpaces(spaces, changes.spaceIds);
    const updated = endpoints.update(id, changes);
    noteEndpoint(audit, "endpoint.changed", by, updated);
    return updated;
  },
  rollEndpoint: ({ endpoints, audit }, id, next, by) => {
    const { overlapMs, version } = next;
    const once = `endpoint.rolled ${id} ${version}`;
    audit.note({ action: "endpoint.rolled", actor: by, target: id, detail: { overlapMs }, once });
    return endpoints.sealed(endpoints.roll(id, next));
  },
  deleteEndpoint: ({ endpoints, audit }, id, by) => {
    endpoints.delete(id);
    audit.note({ action: "endpoint.deleted", actor: by, target: id });
  },
  endpointFailed: ({ endpoints, audit }, id, version, detail) => {
    if (!endpoints.disable(id, version, detail)) return;
    audit.note({ action: "endpoint.disabled", actor: { id: "workspace" }, target: id, detail: { reason: detail } });
  },
  toldTo: ({ feed, row }, workspaceId, asked) => {
    if (workspaceId !== row.id) throw new ColloquyError("not_found", "There is no such workspace.");
    return feed.toldTo(asked);
  },
};
