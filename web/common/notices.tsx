// Short texts at the edge of a page.
import { Icon } from "./icons";
import { Button } from "./parts";
import type { Notice } from "./state";

interface NoticesProps {
  notices: Notice[];
  whenClosed: (id: number) => void;
}

export function Notices({ notices, whenClosed }: NoticesProps) {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.map((notice) => (
        <div key={notice.id} class={`notice tone-${notice.tone === "bad" ? "bad" : "neutral"}`}>
          <Icon name={notice.tone === "bad" ? "warning" : "check"} />
          <p>{notice.text}</p>
          <Button label="Dismiss" icon="close" kind="quiet" isIconOnly whenPressed={() => whenClosed(notice.id)} />
        </div>
      ))}
    </div>
  );
}
