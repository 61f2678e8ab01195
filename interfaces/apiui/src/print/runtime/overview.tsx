// ---- Shell: overview, navigation, sign-in, and the whole ----

import { PLAN } from "../plan";
import { IncomingList } from "./operation";
import { Badge } from "./parts";
import { PageHead } from "./resource-screen";
import { OverviewSlot } from "./slots";
import type { Ui } from "./types";

export function Overview({ ui }: { ui: Ui }) {
  const resources = PLAN.resources.filter((resource) => resource.removed !== true);
  return (
    <>
      <PageHead title={PLAN.title} note={PLAN.description}>
        {PLAN.apiVersion ? <Badge text={`Version ${PLAN.apiVersion}`} /> : null}
      </PageHead>
      <OverviewSlot ui={ui} />
      <div className="dragoman-tiles">
        {resources.slice(0, 60).map((resource) => (
          <button
            key={resource.id}
            type="button"
            className="dragoman-tile"
            onClick={() => ui.choose({ kind: "resource", resource: resource.id })}
          >
            <strong>{resource.title}</strong>
            <span className="dragoman-hint">{`${resource.operations.length} ${resource.operations.length === 1 ? "operation" : "operations"}${resource.list === undefined ? "" : ", list"}`}</span>
          </button>
        ))}
      </div>
      {PLAN.assumptions.length > 0 ? (
        <section className="dragoman-panel" aria-label="Assumptions">
          <h2 className="dragoman-title">What was assumed</h2>
          <ul className="dragoman-notes">
            {PLAN.assumptions.map((text, index) => (
              <li key={index}>{text}</li>
            ))}
          </ul>
        </section>
      ) : null}
    </>
  );
}

export function IncomingScreen() {
  return (
    <>
      <PageHead title="Webhooks" note="Requests that the API sends to you." />
      <section className="dragoman-panel">
        <IncomingList title="Webhooks" entries={PLAN.webhooks} />
      </section>
    </>
  );
}
