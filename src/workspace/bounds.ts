/** The bounds of one workspace (B3). Reaching one is answered by `limit_reached`, naming it. */

/** People and services. */
export const maxEntities = 10_000;
export const maxAgents = 1000;
/** Spaces that live; those that were deleted do not count. */
export const maxSpaces = 10_000;
export const maxKeys = 20;
export const maxSecrets = 100;

/** How long an answer under an `Idempotency-Key` is kept to be given again. */
export const requestLifetimeMs = 24 * 60 * 60_000;
/** A request that began and never ended (its isolate died) may be tried again after this. */
export const requestLeaseMs = 60_000;
export const maxRequests = 20_000;
/** Answers longer than this are not kept; the repeated request finds what was made by its derived id. */
export const maxStoredAnswerCharacters = 256 * 1024;

/** Errands of the outbox that are carried at the same time, and read from the table at once. */
export const outboxConcurrency = 4;
export const outboxBatch = 64;
