import type { EntityPrincipal, KeyPrincipal, Principal } from "../protocol/principal.ts";

/** A caller that acts as an entity. A secret key does only where it names one. */
export type ActingPrincipal = EntityPrincipal | (KeyPrincipal & { entityId: string });

export const isActing = (principal: Principal): principal is ActingPrincipal => principal.entityId !== undefined;
