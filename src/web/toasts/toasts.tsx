import { createContext, type ReactNode, useCallback, useContext, useState } from "react";
import { IconButton } from "../look/button.tsx";
import { Icon } from "../look/icon.tsx";
import "./toasts.css";

type Toast = { id: number; text: string };

const lifeMs = 8000;
const kept = 3;

const ToastContext = createContext<(text: string) => void>(() => undefined);

/** Shows a sentence for some seconds: what went wrong, and what to do about it. */
export const useToast = (): ((text: string) => void) => useContext(ToastContext);

export const Toasts = ({ children }: { children: ReactNode }) => {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const dismiss = useCallback((id: number) => setToasts((all) => all.filter((toast) => toast.id !== id)), []);
  const show = useCallback(
    (text: string) => {
      const toast = { id: performance.now(), text };
      setToasts((all) => [...all.filter((one) => one.text !== text), toast].slice(-kept));
      setTimeout(() => dismiss(toast.id), lifeMs);
    },
    [dismiss],
  );
  return (
    <ToastContext value={show}>
      {children}
      <div className="toasts stack" role="alert">
        {toasts.map(({ id, text }) => (
          <div key={id} className="toast raised wrap">
            <Icon name="warning" size={18} />
            <span>{text}</span>
            <IconButton icon="close" size={16} label="Dismiss" onClick={() => dismiss(id)} />
          </div>
        ))}
      </div>
    </ToastContext>
  );
};
