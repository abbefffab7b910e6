#!/usr/bin/perl
# In the place of the agent, on a guest or a node whose root is hostile: `liar.pl MODE COMMAND` answers as MODE says.
# It says hello as the real one does, ends by itself after 25 s, and sends 512 MB at most.
use strict;
$| = 1;
my ($mode, $command) = @ARGV;
alarm 25;

if ($mode eq 'git') {
    # What a terminal would do for it: set its title, clear it, answer as if it were typed, write over what stands there.
    print STDERR "\e]0;hostile\a\e[2J\e[H\e[6n\ePq\e\\\x9b31mred\rover\x00\x08\x7fend of it\n";
    my $band = "\x02\e]0;hostile\a\e[2Jremote\rover\n";
    printf "%04x%s", 4 + length $band, $band;
    exit 1;
}

open my $real, '-|', 'sh', '-c', "$command </dev/null" or die;
my $hello = <$real>;
close $real;
print $hello;

if ($mode eq 'line') {
    my $piece = 'a' x 65536;
    print $piece for 1 .. 8192;
    exit 0;
}
my $text = 'hostile ' x 500;
while (my $asked = <STDIN>) {
    next unless $asked =~ /"type":"request"/ and $asked =~ /"id":(\d+)/;
    my $id = $1;
    if ($mode eq 'endless') {
        my $line = qq({"type":"event","id":$id,"event":{"type":"log","stream":"out","text":"$text"}}\n);
        print $line x 16 for 1 .. 8192;
    } elsif ($mode eq 'lies') {
        my $other = $id + 1;
        print qq({"type":"result","id":$other,"result":{"Ok":{"type":"done","changed":true}}}\n);
        print qq({"type":"event","id":$id,"event":{"type":"log","stream":"out","text":"\\u0000\\u001b[2J\\ud83d"}}\n);
        print qq({"type":"event","id":$id,"event":{"type":"progress","done":18446744073709551615,"total":0}}\n);
        print '[' x 100000, "\n";
        print qq({"type":"result","id":$id,"result":{"Ok":{"type":"reading","load":1e38,"uptime_s":18446744073709551615,"memory_total":0,"memory_used":18446744073709551615,"storage":{"total":0,"free":18446744073709551615},"guests":[{"name":"$ENV{VICTIM}","state":"stopped","uptime_s":null,"memory_used":null}]}}}\n);
    } elsif ($mode eq 'silent') {
        sleep 25;
    }
}
