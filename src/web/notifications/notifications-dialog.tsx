import { useCallback, useState } from "react";
import { type Device, messageOf, type NoticeKind, noticeKinds, type Settings } from "../../client/index.ts";
import { Button, LinkButton } from "../look/button.tsx";
import { Dialog } from "../look/dialog.tsx";
import { useSignedIn } from "../session/session.ts";
import { useRequest } from "../session/use-request.ts";
import { useSettings } from "./settings.ts";
import { ownDevice, type Told, toldNow, turnOff, turnOn } from "./this-browser.ts";
import "./notifications.css";

const kindNames: Record<NoticeKind, string> = {
  mention: "Somebody mentions you",
  reply: "Somebody replies to you",
  direct: "Something is said in a space of two",
  needs_you: "An agent needs your answer",
  run_failed: "An agent could not answer you",
};
const alertNames = { always: "Always", when_away: "When I am away", never: "Never" } as const;
type Alerting = keyof typeof alertNames;

type Draft = Pick<Settings, "notifications" | "quietHours">;

const ownZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;
const night = (): NonNullable<Draft["quietHours"]> => ({ from: "22:00", to: "07:00", zone: ownZone() });

/** What alerts the person, when it does not, and where. */
export const NotificationsDialog = ({ onClose }: { onClose: () => void }) => {
  const { settings, problem, change } = useSettings();
  const [draft, setDraft] = useState<Partial<Draft>>({});
  const shown = settings && { ...settings, ...draft };
  const save = async (): Promise<void> => {
    await change(draft);
    onClose();
  };
  const labels = { title: "Notifications", cancelLabel: "Close", submitLabel: "Save" };
  return (
    <Dialog {...labels} isReady={Object.keys(draft).length > 0} onClose={onClose} onSubmit={save}>
      <ThisBrowser />
      {shown ? (
        <SettingsFields shown={shown} onChange={(changes) => setDraft((before) => ({ ...before, ...changes }))} />
      ) : (
        <p className={`small ${problem ? "danger" : "soft"}`}>{problem ?? "Loading your settings …"}</p>
      )}
    </Dialog>
  );
};

type FieldsProps = { shown: Draft; onChange: (changes: Partial<Draft>) => void };

export const SettingsFields = ({ shown: { notifications, quietHours }, onChange }: FieldsProps) => (
  <>
    <fieldset className="notice-kinds">
      <legend className="field-label">What alerts you</legend>
      {noticeKinds.map((kind) => (
        <label key={kind} className="row between">
          <span className="small">{kindNames[kind]}</span>
          <select
            className="input"
            value={notifications[kind]}
            onChange={({ target }) =>
              onChange({ notifications: { ...notifications, [kind]: target.value as Alerting } })
            }
          >
            {Object.entries(alertNames).map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
      ))}
    </fieldset>
    <fieldset className="notice-kinds">
      <legend className="field-label">Quiet hours</legend>
      <label className="row">
        <input
          type="checkbox"
          checked={quietHours !== null}
          onChange={({ target }) => onChange({ quietHours: target.checked ? night() : null })}
        />
        <span className="small">Alert me of nothing by night</span>
      </label>
      {quietHours && (
        <div className="row quiet-hours">
          {(["from", "to"] as const).map((end) => (
            <label key={end} className="row small">
              {end}
              <input
                className="input"
                type="time"
                required
                value={quietHours[end]}
                onChange={({ target }) => onChange({ quietHours: { ...quietHours, [end]: target.value } })}
              />
            </label>
          ))}
          <span className="small soft">{quietHours.zone}</span>
        </div>
      )}
    </fieldset>
  </>
);

const toldWords: Record<Told["by"], string> = {
  push: "This browser tells you, also while no page is open.",
  page: "",
  nothing: "This browser does not tell you of anything.",
};

/** Whether this browser tells the person, and the devices that do so by push. */
const ThisBrowser = () => {
  const { client, entityId } = useSignedIn();
  const now = useRequest(useCallback(() => toldNow(entityId), [entityId]));
  const { answer: devices, again } = useRequest(useCallback(() => client.listDevices(), [client]));
  const [changed, setChanged] = useState<Told | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const told = changed ?? now.answer;
  const act = async (work: () => Promise<Told>): Promise<void> => {
    setBusy(true);
    setProblem(null);
    await work().then(setChanged, (error: unknown) => setProblem(messageOf(error)));
    setBusy(false);
    again();
  };
  const remove = (id: string) => () =>
    act(async () => {
      if (id === ownDevice(entityId)) return turnOff(client, entityId);
      await client.removeDevice(id);
      return toldNow(entityId);
    });
  if (!told) return null;
  return (
    <>
      <p className="small" role="status">
        {[toldWords[told.by], told.why].filter(Boolean).join(" ")}
      </p>
      {problem && (
        <p className="small danger" role="alert">
          {problem}
        </p>
      )}
      {told.by === "push" ? (
        <Button disabled={isBusy} onClick={() => act(() => turnOff(client, entityId))}>
          Turn off in this browser
        </Button>
      ) : (
        <Button disabled={isBusy} onClick={() => act(() => turnOn(client, entityId))}>
          Turn on in this browser
        </Button>
      )}
      <DeviceList devices={devices ?? []} ownId={ownDevice(entityId)} onRemove={remove} />
    </>
  );
};

type DeviceListProps = { devices: Device[]; ownId: string | null; onRemove: (id: string) => () => void };

export const DeviceList = ({ devices, ownId, onRemove }: DeviceListProps) =>
  devices.length === 0 ? null : (
    <ul className="devices" aria-label="Devices that are told by push">
      {devices.map(({ id, name, host }) => (
        <li key={id} className="row between small">
          <span className="ellipsis">
            {name}
            {id === ownId && " (this one)"} <span className="soft">by {host}</span>
          </span>
          <LinkButton aria-label={`Remove ${name}`} onClick={onRemove(id)}>
            Remove
          </LinkButton>
        </li>
      ))}
    </ul>
  );
