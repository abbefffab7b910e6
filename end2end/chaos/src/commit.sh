# Puts a commit on the branch of the guest's project that is deployed, past its hook.
lxc-attach -n "$guest" -- sh -eus "$project" <<'END'
cd "/srv/projects/$1/git/project.git"
export GIT_AUTHOR_NAME=chaos GIT_AUTHOR_EMAIL=chaos@corpus.test GIT_COMMITTER_NAME=chaos GIT_COMMITTER_EMAIL=chaos@corpus.test
# Repositories belong to the project.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0="*"
page=$(echo "hello at $(date +%s%N)" | git hash-object -w --stdin)
tree=$(printf '100644 blob %s\tindex.html\n' "$page" | git mktree)
git update-ref refs/heads/main "$(git commit-tree -m 'A page' "$tree")"
END
