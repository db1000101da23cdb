/** The bounds of one space (B3). Reaching a bound is answered by an error that names it. */

/** Sockets at a time. A bigger audience needs relays. */
export const maxSockets = 5000;
export const maxSocketsPerMember = 1000;
/** Those that a member has opened with a token of its own. A secret key may open as many as the member may have. */
export const maxSocketsPerPerson = 50;

/** Events that a reconnecting socket is given; one that is further behind reloads by HTTP. */
export const maxReplayEvents = 2000;
export const maxReplayBytes = 4 * 1024 * 1024;
export const replayPageEvents = 100;

/** Longest text frame that a client may send, in characters: the longest message, every byte of it escaped. */
export const maxFrameLength = 256 * 1024;
/** Frames of one socket in one window, before it is closed with 4429. */
export const maxFrames = 200;
/** Frames of one member in one window, over all its sockets, before each that sends one more is closed with 4429. */
export const maxMemberFrames = 300;
/** Frames of one socket in one window that make no sense, before it is closed with 4400. */
export const maxBadFrames = 20;
export const frameWindowMs = 10_000;
/** One member's typing is told to the others at most once in this time. */
export const typingIntervalMs = 2000;
/** A socket of a secret key is closed once its key has not been proven to live for this long. */
export const keyProofMs = 60_000;
/** So long before that its workspace is asked again, and how long the answer may take. */
export const keyProofLeadMs = 15_000;
export const keyProofAnswerMs = 10_000;

export const maxPageSize = 200;
/** The newest messages, among which the unread and those that address a person are counted. */
export const maxUnreadScan = 1000;
/**
 * Events after a message among which its receipts are looked for. Who reads it later has read it, by no run. As many
 * members who left since are looked at.
 */
export const maxReceiptScan = 10_000;
/** Ends of runs that are kept with an agent's newer mark, until the log tells that mark again with them. */
export const maxLateReads = 50;

/** Bytes of the log's database after which nothing more can be said here. */
export const maxDatabaseBytes = 8 * 1024 ** 3;

/** One delivery: log events read at a time, messages and characters carried. The longest event has some 400 KB. */
export const maxBatchEvents = 100;
export const maxBatchMessages = 100;
export const maxBatchLength = 1024 * 1024;
/** Times `maxBatchEvents` events that one ask of an endpoint goes through where none is for it: others post meanwhile. */
export const maxToldPages = 20;
/** The log's rows that are kept in memory for its subscribers, in characters. Parsed, they are twice that. */
export const maxTailLength = 256 * 1024;
/** How often an agent is told of messages that do not wake it, where there are many. */
export const listenIntervalMs = 250;
/** The pause between two agents that are told what an erased entity said: others post meanwhile. */
export const forgetTurnMs = 100;
/** A delivery begins so long after what was posted or changed is on disk: its answer goes out before an agent works. */
export const answerFirstMs = 1;
/** How long after an agent has heard its space stores that. */
export const storeHeardMs = 100;
/** A receiver that has not answered in this time is tried again later. */
export const deliverTimeoutMs = 20_000;
/** After a crash between storing and delivering, the delivery is made up for within this time. */
export const watchdogMs = 5000;
/** How often a router that rests while its workspace is suspended looks. Once the space is told, it goes on at once. */
export const suspendedLookMs = 3_600_000;
export const firstBackoffMs = 1000;
export const maxBackoffMs = 5 * 60_000;
/** A cursor that has nothing to carry is stored once it lags this far. */
export const maxIdleLag = 200;
/** How long a change waits for the workspace's index to have heard of it. It does not fail if the index is late. */
export const indexWaitMs = 2000;

/** One go of an erasure: places of the log that are looked at, and rows that change. Others post between two of them. */
export const maxErasedScan = 2000;
export const maxErasedRows = 25;

/** Agents that are asked what they keep of a message that is deleted. */
export const maxAskedAgents = 100;

export const maxChannels = 1000;
export const maxStreamsPerChannel = 16;
/** One line of a channel, in characters. */
export const maxChannelLine = 256 * 1024;
/** A stream sends one frame in this time, by what a frame costs: the shortest where machine and audience allow it. */
export const minDeltaIntervalMs = 4;
export const maxDeltaIntervalMs = 33;
/** Streams remembered to have ended, so that their late deltas are ignored. */
export const maxEndedStreams = 1000;

/** The longest ask of the router. A later answer wakes nobody. */
export const routerTimeoutMs = 10_000;
/** Passing faults of the router's model are retried for this long after the post, and after the outage's first fault. */
export const routerRetryMs = 60_000;
/** How often the router is asked about one message, if crashes cut it off. */
export const maxRouterTries = 2;
/** The events and about the characters whose words an agent is told to forget in one go, and when it is asked again. */
export const maxForgottenEvents = 500;
export const maxForgottenCharacters = 64 * 1024;
export const forgetAgainMs = 500;
/** Messages that the router is asked about at a time; the others wait for their turn. */
export const maxRouterAsks = 20;
/** Messages that are undecided at a time; about more than these the router is not asked. */
export const maxRouterHeld = 200;
/** The router's input: the newest messages, and the agents that came first. Each text and description is cut. */
export const maxRouterMessages = 20;
export const maxRouterAgents = 100;
export const maxRouterTextCharacters = 2000;
export const maxRouterDescriptionCharacters = 300;
/** The router's longest answer: in tokens, unless its model says otherwise, and in characters. */
export const routerOutputTokens = 1000;
export const maxRouterAnswerCharacters = 16_000;
/** The days for which the router's tokens are remembered. */
export const routerLedgerMemoryMs = 30 * 24 * 60 * 60_000;
/** Messages older than the space keeps them are deleted, so many in one go. The next go and the next look come so much later. */
export const expiredAtOnce = 100;
export const expireAgainMs = 1000;
export const retentionLookMs = 60 * 60_000;
/** How long the workspace is waited for to lease the router tokens, and how long a workspace without a limit is not asked again. */
export const routerLeaseWaitMs = 5000;
export const routerLeaseAgainMs = 60_000;
/** How long the agents are waited for to describe themselves, and for how long what they said is good. */
export const describeWaitMs = 2000;
export const descriptionsKeptMs = 5 * 60_000;

/** A search goes through so many messages at a time, from the newest back. The next page goes on from there. */
export const maxSearchedMessages = 1000;
/** Calls that wait for a person, of which one answer has the newest. */
export const maxAskedAtOnce = 200;

/** Tool calls that run or wait in one space at a time. */
export const maxOpenToolCalls = 20_000;
/** The input and the output of a call that shows here, as JSON; of a longer output the beginning is kept. */
export const maxToolInputBytes = 64 * 1024;
export const maxToolOutputBytes = 32 * 1024;
export const maxToolErrorCharacters = 2000;
/** Fields that an approval lists one by one. Those of a larger input stand together as JSON. */
export const maxShownFields = 200;
/** A person's answer, as JSON. */
export const maxAnswerBytes = 64 * 1024;
/** Calls that expire, or are canceled with their agent, in one go. */
export const maxExpiredAtOnce = 50;
