import { createHash, timingSafeEqual } from "node:crypto";

export const digest = (text: string): Uint8Array => createHash("sha256").update(text).digest();

export const sameDigest = (one: Uint8Array, other: Uint8Array): boolean => timingSafeEqual(one, other);

/** Whether two texts are the same, in time that tells nothing of either. */
export const sameText = (one: string, other: string): boolean => sameDigest(digest(one), digest(other));
