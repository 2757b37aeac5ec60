package org.quotahost.table;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/** Replays the commands of standard input with the broker's own Tap; a line "." ends a batch. */
public final class TapReplay {
    private static final StringBuilder OUT = new StringBuilder();

    private static Tap tap;
    private static Tap.Windows windows;

    private TapReplay() { }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals(".")) {
                System.out.print(OUT.append(".\n"));
                System.out.flush();
                OUT.setLength(0);
            } else {
                replay(line.split(" "));
            }
        }
    }

    private static void replay(String[] words) {
        switch (words[0]) {
            case "tap" -> tap = new Tap();
            case "configure" -> windows = windows(words[1], words[2], words[3]);
            case "step" -> step(Double.parseDouble(words[1]), words[2].equals("held"), whole(words[3]));
            case "rise" -> print(windows(words[2], words[3], "30000").rise(whole(words[1])));
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static void step(double factor, boolean held, long nowMs) {
        print(tap.step(windows, factor, held, nowMs) ? 1 : 0);
        print(tap.value());
    }

    private static Tap.Windows windows(String number, String ms, String maxMuteMs) {
        return new Tap.Windows(Integer.parseInt(number), whole(ms), whole(maxMuteMs));
    }

    private static long whole(String word) {
        return Long.parseLong(word);
    }

    private static void print(double number) {
        OUT.append(number).append('\n');
    }
}
