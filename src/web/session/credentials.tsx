import { useState } from "react";
import { Button } from "../look/button.tsx";
import { Dialog } from "../look/dialog.tsx";
import { useSignedIn } from "./session.ts";
import "./sign-in.css";

/** Asks before it ends every session and token of this page's person. */
export const SignOutEverywhereDialog = ({ onClose }: { onClose: () => void }) => {
  const { client, entityId, signOut } = useSignedIn();
  const end = async (): Promise<void> => {
    await client.signOutEverywhere(entityId);
    signOut("left");
  };
  const labels = { title: "Sign out everywhere?", cancelLabel: "Stay", submitLabel: "Sign out everywhere" };
  return (
    <Dialog {...labels} isDangerous onClose={onClose} onSubmit={end}>
      <p>
        You are signed out here and on every other device, at once. Links to sign in that you have not used stop, too.
        You need a new link to come back.
      </p>
    </Dialog>
  );
};

type Person = { id: string; name: string };

/** For an admin: makes a link that signs another person in, once, to be copied. */
export const SignInLinkDialog = ({ person, onClose }: { person: Person; onClose: () => void }) => {
  const { client } = useSignedIn();
  const [link, setLink] = useState<string | null>(null);
  const [isCopied, setCopied] = useState(false);
  const make = async (): Promise<void> => {
    if (link !== null) return onClose();
    setLink((await client.makeSignInLink(person.id)).link);
  };
  const copy = async (text: string): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
  };
  const labels = { title: `Sign-in link for ${person.name}`, cancelLabel: "Close" };
  return (
    <Dialog {...labels} submitLabel={link === null ? "Make a link" : "Done"} onClose={onClose} onSubmit={make}>
      {link === null ? (
        <p>
          It signs {person.name} in once, within ten minutes. Send it to nobody else. Who is signed in by it approves
          nothing, and sees that you made it.
        </p>
      ) : (
        <div className="row">
          <input
            className="input grow"
            aria-label="Link"
            readOnly
            value={link}
            onFocus={({ target }) => target.select()}
          />
          <Button onClick={() => copy(link)}>{isCopied ? "Copied" : "Copy"}</Button>
        </div>
      )}
    </Dialog>
  );
};
