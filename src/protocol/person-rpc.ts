import type { Follows, Notice, Standing } from "./line.ts";
import type { ChangeSettings, Device, NewDevice, Settings } from "./notifications.ts";
import type { Principal } from "./principal.ts";
import type { Rpc } from "./rpc.ts";

/**
 * All that is new for one person in one space: how it stands, their read mark, and what concerns them since the delivery before.
 * These three are left out once the person has left the space. `changed`: messages that were edited or deleted. `left`: who left.
 * `confidential`: the space is.
 */
export type PersonDelivery = {
  workspaceId: string;
  spaceId: string;
  confidential?: true;
  standing?: Standing;
  readSeq?: number;
  notices?: Notice[];
  changed: string[];
  left?: string[];
};

/** `origin`: the page that it comes from. `pushKey`: the deployment's key that it subscribed with. */
export type AddedDevice = Omit<NewDevice, "expirationTime"> & { id: string; origin: string; pushKey: string };

/** The person whose object is asked: a human of that workspace, as the worker has seen. */
export type Self = { workspaceId: string; entityId: string };

export type PersonRpc = Rpc<PersonMethods>;
interface PersonMethods {
  /** From a space, in order. Answers how much the person wants to be told from now on; null: nothing. */
  hear(delivery: PersonDelivery): { follows: Follows | null };
  /** From the workspace: the person is in a space that is new to them. */
  joined(workspaceId: string, spaceId: string): null;
  /** From the workspace: as `proveAgain` of a space. */
  proveAgain(workspaceId: string, subject: string): null;
  settings(self: Self): Settings;
  changeSettings(self: Self, changes: ChangeSettings): Settings;
  devices(self: Self): Device[];
  /** The same endpoint again replaces what was said of it. */
  addDevice(self: Self, added: AddedDevice, principal: Principal): { device: Device; isNew: boolean };
  removeDevice(self: Self, deviceId: string): null;
  /** From the workspace: all lines close as it is suspended, and devices are told nothing until it goes on. */
  setSuspended(workspaceId: string, suspended: boolean): null;
  /** From the workspace: the entity is no more. Nothing is kept of it. */
  remove(workspaceId: string): null;
}
