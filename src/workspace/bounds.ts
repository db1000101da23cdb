/** The bounds of one workspace (B3). Reaching one is answered by `limit_reached`, naming it. */

/** People and services. */
export const maxEntities = 10_000;
export const maxAgents = 1000;
/** Removed people and services by their ids, and people by what JWTs call them: of more, the first that were removed may come again. */
export const maxRemovedSubjects = 20_000;
/** Spaces that live; those that were deleted do not count. */
export const maxSpaces = 10_000;
/** Spaces that one person or service makes by their own token: that live, and in any day, deleted ones among them. */
export const maxSpacesOfPerson = 1000;
export const maxSpacesOfPersonPerDay = 50;
/** Secret keys that live. Beside them, as many that were rolled and go on for their overlap. */
export const maxKeys = 20;
/** The last use of a key is written once in this time. */
export const keyUseMs = 60 * 60_000;
export const maxSecrets = 100;

/** How long a sign-in link can be used. */
export const signInCodeMs = 10 * 60_000;
/** Sign-in links that could be used now. */
export const maxSignInCodes = 1000;
/** Browsers that one person is signed in on; one more signs the oldest out. */
export const maxSessionsOfPerson = 50;

/** How long an answer under an `Idempotency-Key` is kept to be given again. */
export const requestLifetimeMs = 24 * 60 * 60_000;
/** A request that began and never ended (its isolate died) may be tried again after this. */
export const requestLeaseMs = 60_000;
/** Requests with an `Idempotency-Key` that are kept of one caller: a person, a service, or a secret key for all it acts as. */
export const maxRequests = 20_000;
/** Bytes of the workspace's database past which no more answers are kept, as if they were too long. */
export const maxAnswerDatabaseBytes = 4 * 1024 ** 3;
/** Answers longer than this are not kept; the repeated request finds what was made by its derived id. */
export const maxStoredAnswerCharacters = 256 * 1024;

/** Tokens of the workspace's day that an agent leases beyond what it needs at once. */
export const maxTokensLeased = 100_000;

/** Rows of what persons, and agents in spaces, used on a day. Where there are more those of the oldest days leave. */
export const maxUsageDetails = 500_000;

/** Outgoing webhooks. */
export const maxEndpoints = 20;
/** What happened is kept for endpoints for this long, to be sent and sent again, and so much of it. Of more, the oldest leaves. */
export const feedAgeMs = 7 * 86_400_000;
export const maxFeedEvents = 20_000;
/** Of it, one go reads so many. */
export const maxFeedPage = 100;

/** Entries of the audit log. One more has the oldest leave. */
export const maxAuditEntries = 100_000;
/** How long an entry of the audit log is kept: 400 days. */
/** How long the server of the audit log's webhook may take. */
export const auditAnswerMs = 15_000;
/** How often what rests while the workspace is suspended is looked at. Once it is resumed, it goes on at once. */
export const suspendedLookMs = 3_600_000;
export const auditAgeMs = 400 * 24 * 60 * 60_000;

/** Things that no secret of the ring opens, as a re-sealing names them. */
export const maxUnopened = 100;
/** An agent whose compartments are not told yet is asked again after this. */
export const resealAgainMs = 1000;

/** Series and objects in one shard of the deployment's figures. Another series is not counted; the longest silent objects leave. */
export const maxMeterSeries = 5000;
export const maxMeterGauges = 100_000;
/** How long the last word of an object about its sockets and jobs counts: a day. */
export const gaugeAgeMs = 24 * 60 * 60_000;

/** Spaces and agents that are told of a change at the same time. */
export const maxTellsAtOnce = 4;
/** Spaces and agents that are told of a suspension, an end of credentials, or ended with the workspace, at the same time. */
export const maxHaltsAtOnce = 16;
/** That an object has sockets is written once in this time. */
export const socketUseMs = 60 * 60_000;
/** An object that proved no socket for as long is told of ended credentials with those that have none. */
export const socketsKnownMs = 30 * 86_400_000;
/** A space or an agent that has not answered in this time is told again later. */
export const tellTimeoutMs = 20_000;

/** Objects that one workspace's erasures visit at the same time: others work meanwhile. */
export const maxErasedAtOnce = 2;
/** The pause after a go, and for each row that it changed: its agents forget meanwhile. When one that waits is asked again. */
export const erasePauseMs = 100;
export const erasePausePerRowMs = 40;
export const eraseAgainMs = 250;
/** Erasures that are under way, and that are remembered: of more, the oldest that is done leaves. */
export const maxErasuresAtOnce = 100;
export const maxErasures = 10_000;
/** Objects that are left, as an erasure lists them. */
export const maxWaitingShown = 20;
