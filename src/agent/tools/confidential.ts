import type { SpaceSnapshot } from "../../protocol/rpc.ts";
import type { Release } from "../../protocol/space.ts";
import type { Approval } from "../../protocol/tool.ts";
import type { ToolCallRelease } from "../../protocol/tool-call.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { quote } from "../../shared/quote.ts";
import { readersIn } from "../../shared/readers.ts";
import type { Identity } from "../identity.ts";
import type { Spaces } from "../spaces.ts";

/** Where a mind of an agent may speak: read down, write level (C18). */
type Minds = { identity: Identity; spaces: Spaces };

/** Whether what this mind says may show in that space. */
export const maySpeakIn = ({ identity }: Minds, spaceId: string): boolean =>
  (identity.get().compartmentSpaceId ?? spaceId) === spaceId;

/** Throws `forbidden` where a confidential space's run would speak in another space. Its people read this too. */
export const requireOwnSpace = (minds: Minds, spaceId: string): void => {
  if (maySpeakIn(minds, spaceId)) return;
  const own = minds.identity.get().compartmentSpaceId ?? "";
  const name = quote(minds.spaces.get(own)?.snapshot.name ?? "");
  throw new ColloquyError(
    "forbidden",
    `what is said in ${name} stays there, so its agents speak in no other space; enter it (${own}) to say it there: its people can carry it on`,
  );
};

const releaseMinutes = 24 * 60;

/** A confidential space's own people who may let words out of it. */
const releasersOf = ({ members }: SpaceSnapshot, { approvers }: Release): string[] => {
  const people = members.flatMap(({ id, type }) => (type === "human" ? [id] : []));
  return approvers ? people.filter((id) => approvers.includes(id)) : people;
};

const ownSpace = ({ identity, spaces }: Minds): SpaceSnapshot | undefined =>
  spaces.get(identity.get().compartmentSpaceId ?? "")?.snapshot;

/**
 * Whom a confidential space's run must ask before it says something in that other space (C20). Undefined where it says
 * it in its own space. Not `required` where nobody could agree: its people see the call, and why it is refused.
 */
export const releaseFrom = (minds: Minds, spaceId: string): Approval | undefined => {
  if (maySpeakIn(minds, spaceId)) return undefined;
  const own = ownSpace(minds);
  const approvers = own?.release && releasersOf(own, own.release);
  const { quorum = 1, approvers: named } = own?.release ?? {};
  const common = { expiresInMinutes: releaseMinutes, quorum };
  if (!approvers || approvers.length < quorum) return { ...common, required: false };
  return { ...common, required: true, ...(named && { approvers }) };
};

/** Where words would go that a confidential space lets out, for those who are asked. */
export const releaseTo = ({ id, name, members, confidential }: SpaceSnapshot): ToolCallRelease => ({
  ...{ spaceId: id, name, readers: readersIn(members), confidential: confidential === true },
});

/** Throws `forbidden` where those who let words out of a confidential space are not enough now. */
export const requireReleased = (minds: Minds, spaceId: string, agreed: readonly string[]): void => {
  const own = ownSpace(minds);
  const name = quote(own?.name ?? "");
  if (!own?.release && agreed.length === 0) requireOwnSpace(minds, spaceId);
  if (!own?.release) {
    const message = `${name} lets no words out any more (its release): say it in that space alone`;
    throw new ColloquyError("forbidden", message);
  }
  const { quorum } = own.release;
  const mayRelease = releasersOf(own, own.release);
  const count = mayRelease.filter((id) => agreed.includes(id)).length;
  if (count >= quorum) return;
  throw new ColloquyError(
    "forbidden",
    agreed.length === 0
      ? `${quorum} must agree to let words out of ${name} (its release), and ${mayRelease.length} of those who may are in it: whoever runs that space names others`
      : `the release of ${name} has changed: ${quorum} must agree, and ${count} of those who agreed still may; call the tool again to ask them anew`,
  );
};

/** Whether the space is confidential and another mind of the agent hears it. */
export const isDeafTo = ({ identity, spaces }: Minds, spaceId: string): boolean =>
  spaces.get(spaceId)?.snapshot.confidential === true && identity.get().compartmentSpaceId !== spaceId;

/** Throws `forbidden` where a run would wait for people of a confidential space, or ask them, and not hear them. */
export const requireHearing = (minds: Minds, spaceId: string, what: string): void => {
  if (!isDeafTo(minds, spaceId)) return;
  throw new ColloquyError(
    "forbidden",
    `${what}: the active space is confidential, and you do not hear what is said there; say it without that, or ask in an open space`,
  );
};

/** Told to a run beside the history of such a space. */
export const whyNoHistory = {
  confidential:
    "What is said in this space is known to your runs in it alone. You may say something here; you will not read the answers.",
};
