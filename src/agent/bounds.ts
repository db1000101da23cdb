/** Every bound of an agent, by name. Reaching one is answered by an error that names it (B3). */

/** Events that wait for one agent or that it has taken, dead ones aside; past it whatever comes is refused, and comes again. */
export const maxInboxEvents = 5000;
/** Events that are held until a person's share begins anew: of one person, and of all. What comes beyond them is only heard. So are a person's messages once as many of their events wait as may be held of all. */
export const maxHeldEventsOfPerson = 100;
export const maxHeldEvents = 2500;
/** A space that could not be told whose budget is used up is told again after this time. */
export const tellBudgetAgainMs = 30_000;
/** Dead events that are kept. Beyond it those that died first are evicted: messages to their space's history, others to the log. */
export const maxDeadLetters = 1000;
/** Overheard events, and the UTF-8 that they may fill, in bytes. Beyond it the oldest are evicted: messages to their space's history, others to the log. */
export const maxOverheardEvents = 500;
export const maxOverheardBytes = 1024 * 1024;
/** Events that one run takes, and the UTF-8 that they may fill, in bytes: a row holds 2 MB. */
export const maxBatchEvents = 100;
export const maxBatchBytes = 256 * 1024;
/** Failed runs, or attempts of a run that may have acted, after which an event is dead. */
export const maxAttempts = 5;
/** Failed runs after which a batch is taken one event at a time. */
export const maxBatchAttempts = 2;
/** UTF-8 of a service event's payload, in bytes. */
export const maxPayloadBytes = 64 * 1024;
/** Ways in for webhook senders. */
export const maxHooks = 50;
/** How long a delivery that names no id is told from another by its body alone. */
export const sameBodyMs = 5 * 60_000;
/** Ids of service events that are remembered, so that each comes in once; the oldest are forgotten first. */
export const maxDedupeKeys = 50_000;
export const maxMemories = 500;
/** All memories together, in characters. */
export const maxMemoriesCharacters = 100_000;
export const maxGoals = 200;
/** Blocks of one agent, agents and spaces that one of them is shared with, and others' that are shared with one agent. */
export const maxBlocks = 200;
export const maxSharesOfBlock = 50;
export const maxSpacesOfBlock = 50;
export const maxSharedBlocks = 200;
/** Fields of one block that its prompt or an error names; the rest is counted. */
export const maxShownFields = 40;
/** Versions of a block that are kept, those that one author may undo, and updates after a block's snapshot. */
export const maxBlockVersions = 1000;
export const maxUndoSteps = 500;
export const maxBlockTail = 64;
/** Messages that one version of a block names as its sources: the newest. Those that woke its run go before others. */
export const maxBlockSources = 20;
/** Bytes of a block's snapshot before the oldest of its history is left out, and bytes that one edit may add. */
export const maxBlockSnapshotBytes = 4 * 1024 * 1024;
export const maxBlockUpdateBytes = 1_500_000;
/** Blocks that are open in memory; edits whose calls are remembered. */
export const maxOpenDocuments = 16;
export const maxBlockCalls = 500;
/** Sockets that follow one agent's blocks, and of those one person's or service's, opened by a token of their own. */
export const maxSubscribers = 200;
export const maxSubscribersPerPerson = 20;
/** How often their rights are proven again, how long that may take, and frames that one may send in vain. */
export const subscriberProofMs = 45_000;
export const subscriberAnswerMs = 10_000;
export const maxSubscriberFrames = 20;
/** Spaces, and members of each, that the state in the input names; the rest is counted. */
export const maxToldSpaces = 100;
export const maxToldMembers = 30;
/** How many blocks of others that stand in no input are told of by name. The rest is counted. */
export const maxToldShares = 20;
/** The ACTIVITY section of an input: its lines if the config gives no number, their estimated tokens, and their greatest age. */
export const maxActivityLines = 20;
export const maxActivityTokens = 1000;
export const activityMemoryMs = 24 * 60 * 60_000;
/** For it, so many spaces are asked, those with the most news first. Each tells so many of its newest messages, or as many as lines if those are more. All of them have so long. */
export const maxActivitySpaces = 20;
export const maxActivityMessages = 20;
export const activityWaitMs = 2000;
/** Messages that one `enter_space` or `read_messages` may return, and the estimated tokens that they may fill. */
export const maxWindowMessages = 200;
export const maxWindowTokens = 16_000;
/** Characters of JSON that one answer about a run may fill; past it the rest of the steps is asked for again. */
export const maxRunViewCharacters = 4_000_000;
/** Bytes that are read of a server's answer to a tool, and estimated tokens of it that a result may hold. */
export const maxAnswerBytes = 1024 * 1024;
export const maxToolOutputTokens = 16_000;
/** The same, in bytes of JSON: estimates say little of what is no words. */
export const maxToolOutputBytes = 256 * 1024;
/** All tools of one agent as JSON, in bytes: its row holds 2 MB. */
export const maxToolsBytes = 512 * 1024;
/** Tool calls that one step may make. */
export const maxCallsPerStep = 32;
/** UTF-8 of what one step may say and call, in bytes: its row holds it twice, and a model may never end. */
export const maxStepBytes = 256 * 1024;
/** Characters that are told of what is wrong with a call. */
export const maxInvalidCharacters = 1000;
/** Steps in a row whose every call was invalid, after which the run fails as nonsense. */
export const maxInvalidSteps = 3;
/** How many skipped events the next inbox message lists. */
export const maxSkippedLines = 50;
/** Without any progress for so long, a run is aborted and goes on from its journal. */
export const stallMs = 90_000;
/** A guest's run is taken from the program that has it after so long without a sign of life. One that nobody has claimed waits until the second, which is for ever. */
export const guestLeaseMs = 60_000;
export const untilClaimed = 8_640_000_000_000_000;
/** A guest without a claim and an act for so long is told to be away. */
export const guestGoneMs = 10_000;
/** Programs of a guest that wait for a run, acts of one run that wait for their turn, and how long an act is waited for. */
export const maxGuestClaims = 20;
export const maxGuestActs = 32;
export const guestAnswerMs = 50_000;
/** A space that has not answered in this time is asked again, a few times: less in all than a stall. */
export const spaceAnswerMs = 5000;
/** A workspace that has not answered in this time is asked again later what is to become of an import. */
export const directoryAnswerMs = 5000;
/** A run waits for answers in a chat for so long, then goes on without them. A cycle that asked is then told who is silent. */
export const replyWaitMs = 24 * 60 * 60_000;
/** Runs of one agent that wait for answers at a time. */
export const maxWaitingRuns = 50;
/** How many of a timeline agent's waiting runs its other runs are told of by name. The rest is counted. */
export const maxToldRuns = 10;
/** Ended runs in an input: it looks at so many of the newest for what they did, lists so many, and these fill so many estimated tokens. */
export const maxPastRuns = 30;
export const maxRecentRuns = 10;
export const maxRecentRunsTokens = 4000;
/** Each of those lists its newest deeds. An input, an output or a text in it is cut to so many characters. */
export const maxRecentDeeds = 8;
export const maxRecentCharacters = 400;
/** A result of more bytes is read for that up to so many characters. */
export const maxPastResultBytes = 8 * 1024;
export const maxPastResultCharacters = 1900;
/** If a message has several causes, an agent is told so many of the newest. `get_my_runs` has all. */
export const maxToldCauses = 5;
/** Runs of its open mind that a compartment is fed at a time, and the characters that they may fill. It is told how many more there were. */
export const maxFedRuns = 200;
export const maxFedCharacters = 8_000_000;
/** Tool calls of an agent that wait for people or servers, or run beside its runs. */
export const maxOpenCalls = 1000;
/** Actions of calls that are under way at a time, of those that ask servers and of the others: the platform allows six connections. */
export const maxCallActions = 4;
/** Pauses of an action that failed. */
export const callBackoffMs = 1000;
export const longestCallBackoffMs = 5 * 60_000;
/** A server may still answer so long after its call's run went on, or where no run waited. */
export const lateAnswerMs = 24 * 60 * 60_000;
/** How long an answered call is known, so that the same answer again is no error. */
export const answeredMemoryMs = 24 * 60 * 60_000;
/** How often the watchdog looks while there is work: what a crash cut goes on within this time. */
export const watchdogMs = 5000;
/** How often what rests while its workspace is suspended is looked at. Once the agent is told, it goes on at once. */
export const suspendedLookMs = 3_600_000;
/** How often the time that a run has worked is stored. After a crash, up to this much of it is guessed. */
export const workNoteMs = 25_000;
/** Silence of a model, before its stream or in it, after which its call is given up. */
export const modelStallMs = 60_000;
/** Passing faults of a model are retried for so long. */
export const maxBackoffTotalMs = 24 * 60 * 60_000;
/** Pauses between tries, before jitter: of a step after a passing fault, of a run that failed for good (under a minute). */
export const faultBackoffMs = 1000;
export const longestFaultBackoffMs = 10 * 60_000;
export const failurePauseMs = 1000;
export const longestFailurePauseMs = 39_000;
/** How long canceling a run waits for what it has under way. */
export const cancelWaitMs = 10_000;
/** How long the end of a run's channel waits for its space. */
export const endWaitMs = 2000;
/** How long a server may take to take a call in, or to answer it at once. */
export const pushTimeoutMs = 30_000;
/** How long the view of the next input may take. */
export const viewTimeoutMs = 10_000;
/** How often a space is asked before a run gives its call up as not answered. */
export const reachSpaceTries = 4;
export const firstReachPauseMs = 200;
/** How long a mind of an agent waits for another one's answer, and how many compartments are told or ended at once. */
export const mindAnswerMs = 5000;
export const maxCompartmentsAtOnce = 10;
/** A removal of an agent that did not reach all of its compartments is tried again by the agent itself after this time. */
export const removeAgainMs = 30_000;
/** Roots that were not heard of for so long are forgotten. */
export const rootMemoryMs = 30 * 24 * 60 * 60_000;
/** A compartment's step counts as under way for so long, and a step that waits for others asks again so often. */
export const maxLeaseMs = 10 * 60_000;
export const tokensAgainMs = 1000;
/** How long after its last lease an agent gives back what it has leased of its workspace's day and not booked. */
export const returnLeaseMs = 60_000;
/** A ledger of a day longer ago is forgotten. */
export const ledgerMemoryMs = 30 * 24 * 60 * 60_000;
/** Bytes of an agent's database, in its open mind and in each compartment: the platform's end is at 10 GiB. */
export const maxAgentBytes = 8 * 1024 ** 3;
/** An agent keeps a day's tokens by person and space for this long, in case it cannot tell its workspace sooner. */
export const usageMemoryMs = 7 * 24 * 60 * 60_000;
/** Plans of an agent that are still to come, and how many of the others are kept to tell of. */
export const maxPlans = 100;
export const maxDonePlans = 10;
/** How far ahead a plan may be due. */
export const minPlanAheadMs = 1000;
export const maxPlanAheadMs = 3653 * 24 * 60 * 60_000;
/** A plan whose event cannot enter the inbox is tried again after this time. */
export const planRetryMs = 60_000;
/** The time in which `maxRunsPerHour` runs may begin, and when to try again what would wait for as many runs. */
export const runsHourMs = 60 * 60_000;
export const crowdedRetryMs = 60_000;
/** Recurring plans that an agent set itself begin at most one new root in this time (B1). */
export const agentRootEveryMs = 5 * 60_000;
/** Tools that one MCP server may bring, what each may say of itself, and what the list of one server may fill. */
export const maxMcpTools = 64;
export const maxMcpDescriptionCharacters = 1000;
export const maxMcpSchemaBytes = 8 * 1024;
export const maxMcpListBytes = 128 * 1024;
/** Pages of such a list that are asked for, and how many tools that were left out are told of. */
export const maxMcpPages = 20;
export const maxMcpLeftOut = 50;
/** What one answer of an MCP server may hold, and what of a call's result the model is shown. */
export const maxMcpAnswerBytes = 1024 * 1024;
export const maxMcpResultCharacters = 24_000;
/** How long a server has to be connected to and again to list its tools, for each request of connecting, and to be left. */
export const mcpListTimeoutMs = 15_000;
export const mcpProbeTimeoutMs = 7000;
export const mcpCloseMs = 2000;
/** A connection that nobody uses for so long is closed: the object could not sleep beside it. */
export const mcpIdleMs = 20_000;
/** A list older than this is fetched again when its server is called, or when a run begins. */
export const mcpFreshMs = 60_000;
export const mcpStaleMs = 10 * 60_000;
/** A server that fails is asked again after this time, twice that the next time, up to the longest. */
export const mcpFirstRetryMs = 5000;
export const mcpLongestRetryMs = 30 * 60_000;
/** A fetch that was cut is begun again after this time. */
export const mcpLeaseMs = 40_000;
/** Spans that wait to be sent, the characters that one content of theirs may fill, and the time that sending may take. */
export const maxBufferedSpans = 512;
export const maxSpanContentCharacters = 32_000;
export const spanExportTimeoutMs = 10_000;
/** Archival entries of one agent. */
export const maxArchivalEntries = 200_000;
/** Passages that one agent's index holds; past it only blocks are taken in, and search says so. */
export const maxSearchEntries = 500_000;
/** Rows that a search takes in before it answers, those that the timer takes in each time, and in one transaction; its characters. */
export const searchCatchUpRows = 5000;
export const searchWorkRows = 5000;
export const searchBatchRows = 200;
export const searchBatchCharacters = 128_000;
/** How long a search waits for its spaces, and for the vector of its query. */
export const searchWaitMs = 3000;
export const searchEmbedMs = 3000;
/** Spaces that one search asks for news: those that are known to have some first. */
export const maxAskedSpaces = 50;
export const maxAskedAtOnce = 5;
/** Once used, the index is kept up so often, for so long after its last use. */
export const searchKeepUpMs = 10 * 60_000;
export const searchKeptMs = 24 * 60 * 60_000;
/** How soon an index that compartments read takes in what is new. */
export const searchNewsMs = 5000;
/** Between two stretches of work that is left over; one that was cut is begun again after the second time. */
export const searchPauseMs = 1000;
export const searchLeaseMs = 60_000;
/** An embedder that failed is asked again after this time, twice that the next time, up to the longest. */
export const embedFirstRetryMs = 5000;
export const embedLongestRetryMs = 30 * 60_000;
export const embedTimeoutMs = 30_000;
/** Vectors that one row holds, in bytes: a row may have 2 MB, and is written anew when vectors are added to it. */
export const maxVectorRowBytes = 256 * 1024;
/** Estimated tokens of a summary of older cycles or messages. It fills a quarter of a small model's input at most. */
export const maxSummaryTokens = 2000;
/** Characters of a summary that a model answers, and how long the answer may take. */
export const maxSummaryCharacters = 64_000;
export const summaryTimeoutMs = 120_000;
/** Rows that one go of a redaction looks at, and when it looks again for runs that hold its end up. */
export const redactionRows = 200;
export const redactionAgainMs = 250;
/** The pause between two goes, and the longest where the agent's timer goes off late. */
export const redactionPauseMs = 50;
export const longestRedactionPauseMs = 2000;
/** An erased entity's words wait for more of them: so long at least, and so long after a long look. One look takes in about so many characters. */
export const redactionWaitMs = 1500;
export const longestRedactionWaitMs = 10_000;
export const maxJoinedCharacters = 64 * 1024;
/** Changed messages that are kept to tell the agent's runs of them, and how much is told of a new text, in characters. */
export const maxRedactionsKept = 100;
/** Runs whose journal is cut at once, since all of their spaces keep messages for less long; and how often such are looked for. */
export const cutRunsAtOnce = 50;
export const journalLookMs = 24 * 60 * 60_000;
/** Readers of an erased agent's block forget so many of its newest versions, in redactions of so many characters. */
export const maxVersionsTakenBack = 200;
export const maxWordsTakenBack = 64 * 1024;
export const maxChangedTextCharacters = 2000;
/** Newest rows that are looked at for what was written down of a deleted message, and how much of that is told. */
export const maxRelatedRows = 5000;
export const maxRelatedItems = 50;
/** How many messages before the window are folded, if a space is older than its agent's summary of it. */
export const maxSummaryBacklog = 400;
/** A summary that failed is tried again after this time, twice that the next time, up to the longest. */
export const summaryFirstRetryMs = 30_000;
export const summaryLongestRetryMs = 60 * 60_000;
/** Uses of secrets that an agent keeps, and those of one secret that it tells at once: the newest. */
export const maxSecretUses = 5000;
export const maxSecretUsesTold = 200;
/** What one page of an export holds, in characters, and what of a block's history is folded before it is exported, in bytes. */
export const exportPageCharacters = 1_000_000;
export const exportTailBytes = 2 * 1024 * 1024;
/** Names that an export holds, and those of them that the workspace is asked for. */
export const maxExportedNames = 10_000;
export const maxNamesAsked = 100;
/** An import that nobody goes on with makes way for another after the first, and is put away after the second. */
export const importIdleMs = 60_000;
export const importAbandonedMs = 5 * 60_000;
/** Versions of an imported block that are read to be sure of them, where it has more the oldest and newest. */
export const maxForeignReads = 100;
