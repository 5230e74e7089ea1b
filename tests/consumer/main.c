// The whole of a C program that uses punctual: some beats at 1 kHz, and what they were like.
#include <punctual/punctual.h>

#include <stdio.h>

int main(void) {
  punctual_pacer* pacer = NULL;
  punctual_beat beat = PUNCTUAL_BEAT_INIT;
  punctual_receipt receipt = PUNCTUAL_RECEIPT_INIT;
  char text[2000];
  int wrong = 0;
  int i;

  /* Compiled for another library than the one that runs? */
  if (punctual_version() / 1000 != PUNCTUAL_VERSION_MAJOR * 1000 + PUNCTUAL_VERSION_MINOR) return 2;

  if (punctual_pacer_create(1000, 1, PUNCTUAL_SKIP, 0, NULL, &pacer) != PUNCTUAL_OK) return 3;
  for (i = 0; i < 20; ++i) {
    punctual_pacer_next(pacer, &beat, &receipt);
    wrong += !beat.delivered || punctual_now_ns() < beat.due_ns;
  }
  if (punctual_pacer_text(pacer, text, sizeof text) > 0) puts(text);
  punctual_pacer_destroy(pacer);

  const int64_t deadline = punctual_now_ns() + 1000000;
  wrong += punctual_sleep_until_ns(deadline, NULL) != PUNCTUAL_REACHED;
  wrong += punctual_now_ns() < deadline;
  return wrong == 0 ? 0 : 1;
}
