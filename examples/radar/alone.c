/* alone FRAMES REPORT PICTURE [TIMES] - all stages, one after another, in one process and without MPI: what the system has to come to, bit for bit. Fails, if
 * in one of the frames a target is not among the detections although it is well inside the range. */
#include "radar.h"

void doppler(const sample *cube, double *power); /* spectrum.f90 */

static int missed(int frame, const detection *found, int n)
{
  int lost = 0;
  for (int t = 0; t < TARGETS; t++) {
    int range, speed, seen = 0;
    target(t, frame, &range, &speed);
    for (int i = 0; i < n; i++) seen |= abs(found[i].range - range) <= 1 && found[i].speed == speed;
    for (int u = 0; u < TARGETS; u++) { /* one that flies close by may hide it */
      int other, fast;
      target(u, frame, &other, &fast);
      seen |= u != t && abs(other - range) < 16 && (abs(fast - speed) <= 2 || abs(fast - speed) >= PULSES - 2);
    }
    lost += !seen && range > 12 && range < SAMPLES - CHIRP - 12;
  }
  return lost;
}

int main(int argc, char **argv)
{
  if (argc < 4) return 2;
  int frames = atoi(argv[1]), all = 0, lost = 0;
  double *power = memory(CELLS * sizeof *power), times = argc > 4 ? atof(argv[4]) : 25;
  sample *cube = memory(CELLS * sizeof *cube);
  picture *p = memory(sizeof *p);
  FILE *out = fopen(argv[2], "w");
  for (int frame = 0; out && frame < frames; frame++) {
    detection found[MOST];
    char line[4096];
    look(frame, cube);
    compress(cube);
    doppler(cube, power);
    int n = detect(frame, power, times, found);
    if (frame == 0) draw_map(p, power);
    fwrite(line, 1, (size_t)report(line, sizeof line, frame, found, n), out);
    for (int i = 0; i < n; i++) draw_detection(p, found + i);
    all += n;
    lost += missed(frame, found, n);
  }
  if (!out || fclose(out) || write_picture(p, argv[3])) {
    perror("alone");
    return 1;
  }
  printf("%d frames, %d detections; %d targets were not seen\n", frames, all, lost);
  free(power);
  free(cube);
  free(p);
  return lost != 0;
}
