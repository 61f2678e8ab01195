// The movable line between chat and interface: by pointer, or with the arrow keys. Its value is the chat's share in percent.
import { setPreferences } from "./actions";

export const LEAST = 15;
export const MOST = 85;
export const USUAL = 30;

const limited = (value: number) => Math.min(MOST, Math.max(LEAST, Math.round(value)));

export function Divider({ value }: { value: number }) {
  const move = (event: PointerEvent) => {
    const box = (event.currentTarget as HTMLElement).parentElement?.getBoundingClientRect();
    if (box !== undefined) setPreferences({ chatWidth: limited(((event.clientX - box.left) / box.width) * 100) });
  };
  return (
    <div
      class="divider"
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the chat"
      aria-valuenow={value}
      aria-valuemin={LEAST}
      aria-valuemax={MOST}
      aria-valuetext={`${value} percent`}
      tabIndex={0}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        document.documentElement.classList.add("is-moving");
      }}
      onPointerMove={(event) => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) move(event);
      }}
      onLostPointerCapture={() => document.documentElement.classList.remove("is-moving")}
      onDblClick={() => setPreferences({ chatWidth: USUAL })}
      onKeyDown={(event) => {
        const step = event.shiftKey ? 10 : 2;
        const next = { ArrowLeft: value - step, ArrowRight: value + step, Home: LEAST, End: MOST, Enter: USUAL }[event.key];
        if (next === undefined) return;
        event.preventDefault();
        setPreferences({ chatWidth: limited(next) });
      }}
    />
  );
}
