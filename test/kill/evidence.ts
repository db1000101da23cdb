import type { Message } from "../../src/protocol/message.ts";
import type { InboxItem, Run } from "../../src/protocol/run.ts";
import type { Sent } from "./person.ts";
import type { Try } from "./receivers.ts";
import type { Payment } from "./refund-desk.ts";
import type { Note } from "./taken-away.ts";
import type { Wire } from "./wire.ts";

/** All that is known when everything is quiet, as plain data: from the API, from the clients, and from who was called. */
export type ClientEvidence = {
  sent: Sent[];
  saw: string[];
  /** What the SDK shows at last. */
  shows: string[];
  openStreams: number;
  waiting: number;
  wire: Wire;
};

export type AgentEvidence = {
  id: string;
  name: string;
  continuity: "consciousness" | "timeline";
  state: string;
  runs: Run[];
  inbox: InboxItem[];
  /** The messages in each input that its model was given: one list for each inbox message or trigger. */
  read: string[][];
};

export type SpaceEvidence = {
  id: string;
  name: string;
  log: Message[];
  clients: ClientEvidence[];
  agents: AgentEvidence[];
  notes: Note[];
};

export type Evidence = {
  spaces: SpaceEvidence[];
  payments: Payment[];
  /** The status that the tokens of signed-out people get. */
  signedOut: number[];
  /** Payments that came without the workspace's secret, and workspaces that an older secret is needed for. */
  unsealed: number;
  followers: FollowerEvidence;
};

/** What one person's line told, when nothing moved any more. Ids of notifications and needs are `<kind> <message>`. */
export type LineEvidence = {
  name: string;
  personId: string;
  space: string;
  /** It has read all in the end; another has read nothing. */
  isReader: boolean;
  isOpen: boolean;
  /** Notifications, each as often as it came; those that were not cleared; those told to who comes back. */
  told: string[];
  left: string[];
  kept: string[];
  /** All that was ever said to need the person, and what still does. */
  shown: string[];
  needs: string[];
  unread: number;
  mentions: number;
  /** Its unread count as the list of spaces has it. */
  listed: number;
  /** Of one that is subscribed to the space. */
  frames?: { saw: string[]; doubled: number; forgotten: number };
};

export type ReceiverEvidence = { name: string; tries: Try[]; unsigned: number; isDisabled: boolean };

export type FollowerEvidence = { lines: LineEvidence[]; receivers: ReceiverEvidence[] };
