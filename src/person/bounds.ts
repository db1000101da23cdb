/** The bounds of one person's line (B3). Reaching a bound is answered by an error that names it. */

/** Lines that a person has open at a time: pages and devices. */
export const maxLines = 50;
/** Spaces that are asked at a time how they stand, as a person begins to look. */
export const maxAsksAtOnce = 10;
export const askTimeoutMs = 5000;
/** Notifications that are kept until they are read, the newest. */
export const maxNotifications = 200;
/** Client frames that wait for a subscription to open. */
export const maxWaitingFrames = 20;
/** Longest text frame that a client may send, in characters: that of a space's stream, and the space's id. */
export const maxLineFrameLength = 256 * 1024 + 100;
/** Frames of one line in one window, before it is closed with 4429. */
export const maxLineFrames = 300;
export const lineWindowMs = 10_000;
/** A line of a secret key is closed once its key has not been proven to live for this long. */
export const lineProofMs = 60_000;
/** So long before that its workspace is asked again, and how long the answer may take. */
export const lineProofLeadMs = 15_000;
export const lineProofAnswerMs = 10_000;
/** A page is looked at while its line said so and was heard of within this time: it pings every 20 s. */
export const lookedAtMs = 60_000;
/** After a push of a space the next waits until this long after it, and counts what came. */
export const pushPauseMs = 30_000;
/** How long a push is tried, and kept by its service. */
export const pushTtlMs = 86_400_000;
/** Devices that are told at a time, and how long a push service may take to answer. */
export const maxPushesAtOnce = 4;
export const pushAnswerMs = 15_000;
/** Ids in one push that takes notifications back: it must stay under 4 KiB. */
export const maxClearedIds = 40;
/** How often the workspace is told that a person has devices: it forgets who had no line for 30 days. */
export const renewMs = 7 * 86_400_000;
