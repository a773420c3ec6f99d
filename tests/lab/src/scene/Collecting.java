/** Keeps some garbage and collects the whole heap again and again. */
public class Collecting {
    public static void main(String[] args) throws Exception {
        byte[][] kept = new byte[64][];
        for (int i = 0; ; i++) {
            kept[i % kept.length] = new byte[256 * 1024];
            if (i % 8 == 0) { System.gc(); Thread.sleep(20); }
        }
    }
}
