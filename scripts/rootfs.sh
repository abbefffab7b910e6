# shellcheck shell=bash
# Debian root file systems as tarballs in the cache, named after what went into
# them: a changed package list or recipe makes a new one, an unchanged one is
# never built twice. Source lib.sh first.

SUITE=bookworm
COMPONENTS=main
# Documentation is a third of a minimal Debian and nobody reads it in a container.
NO_DOCS=(--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*'
  --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*')

# rootfs_name NAME PACKAGES RECIPE: the name, with the hash of all that decides its content.
rootfs_name() {
  printf '%s-%s' "$1" "$(printf '%s\n' "$SUITE" "$2" "${NO_DOCS[@]}" | hash_of - "$3" "$ROOT/scripts/recipe-common")"
}

# rootfs_build FILE PACKAGES RECIPE: the recipe is an executable that gets the
# folder of the unpacked system and finishes it.
rootfs_build() {
  local file=$1 packages=$2 recipe=$3
  [ ! -s "$file" ] || return 0
  is_root || die "building a root file system needs root"
  mkdir -p "$(dirname "$file")"
  rm -f "${file%.tar.zst}".part-*
  mmdebstrap --quiet --mode=root --variant=minbase --components="$COMPONENTS" "${NO_DOCS[@]}" \
    --include="$packages" --customize-hook="$recipe \"\$1\"" \
    "$SUITE" "${file%.tar.zst}.part-$$.tar.zst" ${CORPUS_MIRROR:+"$CORPUS_MIRROR"}
  mv "${file%.tar.zst}.part-$$.tar.zst" "$file"
}
