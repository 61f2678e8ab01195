// Taking a specification: by drop, by file, by address, as text. Problems are shown with their place and advice, missing
// references are supplied by hand, private addresses are asked about.
import { useEffect, useRef, useState } from "preact/hooks";
import { buildAgain } from "./actions";
import { CallError } from "../../../web/common/problem";
import { call, problemOf } from "./api";
import { chooseFile } from "./files";
import { Icon } from "../../../web/common/icons";
import { Button, Confirm, Dialog, Field, ProblemNote, TextField } from "../../../web/common/parts";
import { update } from "./store";
import type { Problem } from "../../../web/common/problem";
import type { Given, Missing, SpecificationProblem, Tab } from "./types";

const LARGEST = 50_000_000;

interface Refusal {
  given: Given;
  problem: Problem;
  problems: SpecificationProblem[];
  missing: Missing[];
}

export function Intake({ tab }: { tab: Tab }) {
  const [way, setWay] = useState<"file" | "url" | "text">("file");
  const [isBusy, setIsBusy] = useState(false);
  const [isOver, setIsOver] = useState(false);
  const [refusal, setRefusal] = useState<Refusal>();
  const [asked, setAsked] = useState<{ given: Given; address: string }>();
  const [wish, setWish] = useState("");
  const submit = async (given: Given) => {
    setIsBusy(true);
    setRefusal(undefined);
    try {
      await call("POST", `/tabs/${tab.id}/specification`, wish.trim() === "" ? given : { ...given, wish });
    } catch (error) {
      const problem = problemOf(error);
      update(({ progress }) => ({ progress: Object.fromEntries(Object.entries(progress).filter(([id]) => id !== tab.id)) }));
      const data = (problem.data ?? {}) as { problems?: SpecificationProblem[]; missing?: Missing[]; private?: string };
      if (error instanceof CallError && data.private !== undefined) setAsked({ given, address: data.private });
      else setRefusal({ given, problem, problems: data.problems ?? [], missing: data.missing ?? [] });
    } finally {
      setIsBusy(false);
    }
  };
  const takeFile = async (file: File | undefined) => {
    if (file === undefined) return;
    if (file.size > LARGEST) {
      const problem = { kind: "tooLarge", message: `${file.name} is larger than 50 MB.`, hint: "Leave out the parts that you do not need." };
      setRefusal({ given: { source: "file", name: file.name, text: "" }, problem, problems: [], missing: [] });
      return;
    }
    await submit({ source: "file", name: file.name, text: await file.text() });
  };
  const whenDropped = (event: DragEvent) => {
    event.preventDefault();
    setIsOver(false);
    const address = event.dataTransfer?.getData("text/uri-list") ?? "";
    const file = event.dataTransfer?.files[0];
    if (file !== undefined) void takeFile(file);
    else if (address !== "") void submit({ source: "url", url: address });
  };
  return (
    <div
      class={`intake${isOver ? " is-over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setIsOver(true);
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={whenDropped}
    >
      <div class="intake-card">
        <span class="empty-icon">
          <Icon name="file" />
        </span>
        <h2>Drop an API specification here</h2>
        <p class="soft">OpenAPI 3, Swagger 2.0 or GraphQL, up to 50 MB.</p>
        <div class="segments" role="group" aria-label="Where the specification comes from">
          {(["file", "url", "text"] as const).map((one) => (
            <button key={one} type="button" class="segment" aria-pressed={way === one} onClick={() => setWay(one)}>
              <Icon name={one === "url" ? "link" : one} />
              {{ file: "File", url: "Address", text: "Paste" }[one]}
            </button>
          ))}
        </div>
        {way === "file" ? (
          <Button label="Choose a file" icon="file" kind="primary" isBusy={isBusy} whenPressed={() => void chooseFile().then(takeFile)} />
        ) : (
          <GivenForm key={way} way={way} isBusy={isBusy} submit={(given) => void submit(given)} />
        )}
        <div class="fill">
          <TextField label="A change to the interface (optional)" value={wish} placeholder="Show books as cards" whenChanged={setWish} />
        </div>
        {isBusy ? (
          <p class="note" role="status">
            Reading the specification…
          </p>
        ) : null}
      </div>
      {refusal === undefined ? null : <Refused refusal={refusal} isBusy={isBusy} submit={(given) => void submit(given)} />}
      {tab.problem === null || refusal !== undefined ? null : (
        <div class="intake-result">
          <ProblemNote problem={tab.problem}>
            {tab.specification === null ? null : <Button label="Try again" icon="reload" whenPressed={() => void buildAgain(tab.id)} />}
          </ProblemNote>
        </div>
      )}
      {asked === undefined ? null : (
        <Confirm
          title="Load from a private address?"
          text={
            <>
              <p class="address code">{asked.address}</p>
              <p>This address is on your machine or in a private network. Load the specification from there only if you know what answers.</p>
            </>
          }
          action="Load it"
          whenConfirmed={() => void submit({ ...asked.given, allowPrivate: true })}
          whenClosed={() => setAsked(undefined)}
        />
      )}
    </div>
  );
}

function GivenForm({ way, isBusy, submit }: { way: "url" | "text"; isBusy: boolean; submit: (given: Given) => void }) {
  const [text, setText] = useState("");
  return (
    <form
      class="stack fill"
      onSubmit={(event) => {
        event.preventDefault();
        submit(way === "url" ? { source: "url", url: text.trim() } : { source: "text", text });
      }}
    >
      <Field label={way === "url" ? "Address of the specification" : "Text of the specification"}>
        {(id) =>
          way === "url" ? (
            <input id={id} class="input" type="url" required placeholder="https://example.com/openapi.yaml" value={text} onInput={(event) => setText(event.currentTarget.value)} />
          ) : (
            <textarea id={id} class="input code" rows={8} required spellcheck={false} placeholder="openapi: 3.1.0" value={text} onInput={(event) => setText(event.currentTarget.value)} />
          )
        }
      </Field>
      <Button label="Build the interface" icon="spark" kind="primary" type="submit" isBusy={isBusy} isDisabled={text.trim() === ""} />
    </form>
  );
}

function Refused({ refusal, isBusy, submit }: { refusal: Refusal; isBusy: boolean; submit: (given: Given) => void }) {
  const { problems, missing, given } = refusal;
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => place.current?.scrollIntoView({ block: "nearest" }), []);
  return (
    <div ref={place} class="intake-result stack">
      <ProblemNote problem={refusal.problem} />
      {problems.length === 0 ? null : (
        <ul class="problems">
          {problems.slice(0, 20).map((problem) => (
            <li key={`${problem.place} ${problem.message}`}>
              <p class="callout-title">{problem.message}</p>
              {problem.place === "" ? null : <code class="code">{problem.place}</code>}
              <p class="soft">{problem.advice}</p>
            </li>
          ))}
        </ul>
      )}
      {missing.length === 0 ? null : (
        <div class="card">
          <Supply missing={missing} isBusy={isBusy} submit={(documents) => submit({ ...given, documents: { ...given.documents, ...documents } })} />
        </div>
      )}
    </div>
  );
}

interface SupplyProps {
  missing: Missing[];
  isBusy: boolean;
  submit: (documents: Record<string, string>) => void;
}

/** The documents that could not be loaded, each to be supplied by hand. */
function Supply({ missing, isBusy, submit }: SupplyProps) {
  const [documents, setDocuments] = useState<Record<string, string>>({});
  const given = Object.fromEntries(Object.entries(documents).filter(([, text]) => text.trim() !== ""));
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        submit(given);
      }}
    >
      <h3>Documents that could not be loaded</h3>
      <p class="soft">The specification refers to them. Supply each by hand, as a file or as text.</p>
      {missing.map(({ location, reason }) => (
        <Field key={location} label={location} note={reason}>
          {(id, described) => (
            <div class="supply">
              <textarea
                id={id}
                class="input code"
                rows={4}
                spellcheck={false}
                aria-describedby={described}
                value={documents[location] ?? ""}
                onInput={(event) => setDocuments({ ...documents, [location]: event.currentTarget.value })}
              />
              <Button
                label={`Choose a file for ${location}`}
                icon="file"
                isIconOnly
                whenPressed={() => void chooseFile().then(async (file) => file && setDocuments({ ...documents, [location]: await file.text() }))}
              />
            </div>
          )}
        </Field>
      ))}
      <div class="row end">
        <Button label="Build again with these" kind="primary" type="submit" isBusy={isBusy} isDisabled={Object.keys(given).length === 0} />
      </div>
    </form>
  );
}

/** For an interface that was built although documents are missing. */
export function SupplyDialog({ tab, whenClosed }: { tab: Tab; whenClosed: () => void }) {
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const missing = tab.specification?.missing ?? [];
  const submit = async (given: Given) => {
    setIsBusy(true);
    setProblem(undefined);
    try {
      await call("POST", `/tabs/${tab.id}/specification`, given);
      whenClosed();
    } catch (error) {
      setProblem(problemOf(error));
      setIsBusy(false);
    }
  };
  const isRemote = missing.some(({ location }) => /^https?:/.test(location));
  return (
    <Dialog title="Missing documents" whenClosed={whenClosed}>
      {problem === undefined ? null : <ProblemNote problem={problem} />}
      <Supply missing={missing} isBusy={isBusy} submit={(documents) => void submit({ source: "again", documents })} />
      {isRemote ? (
        <div class="row">
          <p class="note grow">Or let studio load them from the addresses that the specification names.</p>
          <Button label="Load them" isBusy={isBusy} whenPressed={() => void submit({ source: "again", fetchReferences: true })} />
        </div>
      ) : null}
    </Dialog>
  );
}
