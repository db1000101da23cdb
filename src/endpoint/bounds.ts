/** The bounds of one endpoint (B3). */

/** Sources whose events go out at the same time: a Durable Object has six connections, and reads its sources too. */
export const maxSourcesAtOnce = 4;
/** Events in one delivery, where the endpoint takes several. */
export const maxBatchEvents = 20;
/** How long its server may take to answer. */
export const answerMs = 15_000;
/** The beginning of an answer that is kept, in bytes, and how long it may take to come after the headers. */
export const maxAnswerBytes = 500;
export const answerTextMs = 1000;
/** A source that has not answered in this time is asked again later. */
export const sourceTimeoutMs = 20_000;
/** An endpoint whose server took nothing of a source for this long is disabled. */
export const disableAfterMs = 3 * 86_400_000;
/** How long tries are kept, for lists and to be sent again, and how many. Of more, the oldest leave. */
export const deliveriesAgeMs = 7 * 86_400_000;
export const maxDeliveries = 10_000;
/** How long after a delivery it is stored. After a crash before that it is sent again, under the same id. */
export const storeSentMs = 250;
