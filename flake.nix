{
  description = "A coding assistant for every editor, in one native program";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      forEach = nixpkgs.lib.genAttrs systems;
    in
    {
      packages = forEach (system:
        let pkgs = nixpkgs.legacyPackages.${system};
        in {
          # Without API interfaces: their page bundle is fetched from npm, which a Nix build may not do.
          default = pkgs.rustPlatform.buildRustPackage {
            pname = "dragoman";
            version = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package.version;
            src = self;
            cargoLock.lockFile = ./Cargo.lock;
            cargoBuildFlags = [ "-p" "dragoman" "--no-default-features" "--features" "local" ];
            # The tests need a browser, Node and a network namespace of their own.
            doCheck = false;
            nativeBuildInputs = [ pkgs.installShellFiles ];
            postInstall = ''
              $out/bin/dragoman man --dir man
              installManPage man/*.1
              for shell in bash zsh fish; do
                $out/bin/dragoman completions $shell >dragoman.$shell
              done
              installShellCompletion --cmd dragoman --bash dragoman.bash --zsh dragoman.zsh --fish dragoman.fish
            '';
            meta = {
              description = "A coding assistant for every editor, in one native program";
              license = with pkgs.lib.licenses; [ mit asl20 ];
              mainProgram = "dragoman";
            };
          };
        });
    };
}
