// The places that free changes fill; all are empty at first.

import type { ReactNode } from "react";
import type { Data, Resource, Ui } from "./types";

export const SLOT_STYLES = "";

export const TopSlot: (props: { ui: Ui }) => ReactNode = () => null;

export const OverviewSlot: (props: { ui: Ui }) => ReactNode = () => null;

export const ListSlot: (props: { ui: Ui; resource: Resource; items: Data[] }) => ReactNode = () => null;

export const ItemSlot: (props: { ui: Ui; resource: Resource; item: Data }) => ReactNode = () => null;

export const FootSlot: (props: { ui: Ui }) => ReactNode = () => null;
