import { Component, type ReactNode } from "react";

type BoundaryProps = {
  /** The thing that its children show. When it changes, they are rendered again. */
  of: unknown;
  /** Stands here where its children throw. */
  instead: ReactNode;
  children: ReactNode;
};

type BoundaryState = { of: unknown; hasThrown: boolean };

/** Without it, one thing that cannot be shown would blank the page. */
export class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { of: this.props.of, hasThrown: false };

  static getDerivedStateFromError = () => ({ hasThrown: true });

  static getDerivedStateFromProps = ({ of }: BoundaryProps, state: BoundaryState): BoundaryState | null =>
    of === state.of ? null : { of, hasThrown: false };

  override render = (): ReactNode => (this.state.hasThrown ? this.props.instead : this.props.children);
}
