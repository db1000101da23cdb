import { useState } from "react";
import { Button } from "../look/button.tsx";
import { Dialog } from "../look/dialog.tsx";
import { useSignedIn } from "../session/session.ts";

const tokenDays = 30;
const daySeconds = 24 * 60 * 60;

const configOf = (url: string, token: string): string => {
  const server = { type: "http", url, headers: { Authorization: `Bearer ${token}` } };
  return JSON.stringify({ mcpServers: { colloquy: server } }, null, 2);
};

/** How an assistant takes part by MCP: the address, a token, and both as the config that most of them read. */
export const AssistantDialog = ({ isAdmin, onClose }: { isAdmin: boolean; onClose: () => void }) => {
  const { client, entityId } = useSignedIn();
  const [token, setToken] = useState<string | null>(null);
  const [isCopied, setCopied] = useState(false);
  const address = `${location.origin}/mcp`;
  const config = configOf(address, token ?? "TOKEN");
  const submit = async (): Promise<void> => {
    if (!isAdmin || token !== null) return onClose();
    setToken((await client.makeToken(entityId, tokenDays * daySeconds)).token);
    setCopied(false);
  };
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(config);
    setCopied(true);
  };
  const labels = { title: "Connect an assistant", cancelLabel: "Close" };
  return (
    <Dialog
      {...labels}
      submitLabel={isAdmin && token === null ? "Make a token" : "Done"}
      onClose={onClose}
      onSubmit={submit}
    >
      <p>
        An assistant that speaks MCP reads and writes here as you, and may do no more than you may. Its address is{" "}
        <code>{address}</code>
      </p>
      <p className="small soft">
        {isAdmin
          ? `A token is yours for ${tokenDays} days, is shown this once, and ends when you sign out everywhere.`
          : `Ask who runs this workspace for a token of ${entityId}, and put it in the place of TOKEN.`}
      </p>
      <textarea
        className="input small"
        aria-label="Config"
        readOnly
        wrap="off"
        value={config}
        onFocus={({ target }) => target.select()}
      />
      <Button onClick={copy}>{isCopied ? "Copied" : "Copy the config"}</Button>
    </Dialog>
  );
};
