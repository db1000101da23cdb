import type { EntityType } from "../protocol/entity.ts";
import type { Release } from "../protocol/space.ts";
import { ColloquyError } from "../shared/errors.ts";

/** Throws where nobody could agree as this says: it is for confidential spaces, and people of the space agree. */
export const requireRelease = (
  release: Release | null | undefined,
  isConfidential: boolean,
  members: readonly { id: string; type: EntityType }[],
): void => {
  if (!release) return;
  if (!isConfidential) {
    const detail = "release: only a confidential space has one: set `confidential: true` with it, or leave it out";
    throw new ColloquyError("invalid_request", detail);
  }
  const { approvers, quorum } = release;
  if (!approvers) return;
  const people = new Set(members.flatMap(({ id, type }) => (type === "human" ? [id] : [])));
  const strangers = approvers.filter((id) => !people.has(id));
  if (strangers.length > 0) {
    throw new ColloquyError(
      "unknown_reference",
      `release.approvers: ${strangers.join(", ")}: no person of this space: add them first, or name people who are in it`,
    );
  }
  const most = new Set(approvers).size;
  if (quorum > most) {
    throw new ColloquyError(
      "invalid_request",
      `release.quorum: ${quorum} must agree, and release.approvers names ${most}: name more, or ask for fewer`,
    );
  }
};
