# Corpus. Each goal is a script of scripts/; this file only names them.
.DEFAULT_GOAL := help
.PHONY: help up down purge test slow check dev chaos scale crowd backup-figures hostile release release-test

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24
	@echo
	@echo "  CORPUS_LAB=0 make up     without the lab"
	@echo "  CORPUS_SAMPLE=0 make up  without the sample project on it"
	@echo "  CORPUS_LISTEN=ADDR:PORT  where the server listens (127.0.0.1:8080)"
	@echo "  CORPUS_CACHE=FOLDER      what later runs reuse (~/.cache/corpus); can be deleted"

up: ## build and start Corpus and its lab, print where it is
	@scripts/up

down: ## stop both; their data stays for the next `make up`
	@scripts/down

purge: ## stop both and remove their data
	@scripts/purge

test: ## all tests, on labs of their own; some with PARTS="story look" (scripts/test list)
	@scripts/test $(PARTS)

slow: ## what takes too long for every change: each fault at each step, nodes under load, a virtual machine
	@scripts/test slow

check: ## formatting, lints, licences
	@scripts/check

chaos: ## every job, at every step, with every fault; two hours
	@scripts/chaos

hostile: ## what hostile members, guests and nodes can try, tried
	@scripts/hostile

scale: ## a controller over 1,000 simulated nodes, pages at size, fan-out compared with other tools
	@scripts/scale

crowd: ## 200 browsers on every page: errors, answers a second
	@scripts/crowd

backup-figures: ## what backups cost, beside restic on the same files; ten minutes, 25 GB of disk
	@scripts/backup-figures

release: ## what is shipped, in target/corpus/release: package, archive, command line
	@scripts/release

release-test: ## the package on a fresh Debian: installed, upgraded while jobs run, purged
	@scripts/release-test

dev: ## up, then rebuild and restart on every change
	@scripts/dev
