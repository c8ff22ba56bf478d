/* png.h - writes a picture of 256 colours as a PNG file: uncompressed deflate blocks, the two checksums, nothing more. */
#ifndef PNG_H
#define PNG_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t png_crc(const unsigned char *p, size_t n)
{
  uint32_t c = 0xffffffffu;
  while (n--) {
    c ^= *p++;
    for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
  }
  return ~c;
}

static void png_word(unsigned char *p, uint32_t v)
{
  p[0] = (unsigned char)(v >> 24), p[1] = (unsigned char)(v >> 16), p[2] = (unsigned char)(v >> 8),
  p[3] = (unsigned char)v;
}

static int png_chunk(FILE *f, const char *kind, const unsigned char *data, size_t n)
{
  unsigned char *chunk = malloc(n + 12);
  if (!chunk) return -1;
  png_word(chunk, (uint32_t)n);
  memcpy(chunk + 4, kind, 4);
  if (n) memcpy(chunk + 8, data, n);
  png_word(chunk + 8 + n, png_crc(chunk + 4, n + 4));
  size_t written = fwrite(chunk, 1, n + 12, f);
  free(chunk);
  return written == n + 12 ? 0 : -1;
}

/* The zlib stream of the rows, each with a leading 0 (no filter), in stored blocks. Returns its length; *out is malloc'ed. */
static size_t png_pack(const unsigned char *pixels, int width, int height, unsigned char **out)
{
  size_t raw = (size_t)height * (size_t)(width + 1), blocks = (raw + 65534) / 65535, at = 2, in = 0;
  unsigned char *rows = malloc(raw), *z = malloc(raw + 5 * blocks + 6);
  if (!rows || !z) {
    free(rows);
    free(z);
    return 0;
  }
  for (int y = 0; y < height; y++) {
    rows[(size_t)y * (size_t)(width + 1)] = 0;
    memcpy(rows + (size_t)y * (size_t)(width + 1) + 1, pixels + (size_t)y * (size_t)width, (size_t)width);
  }
  z[0] = 0x78, z[1] = 0x01;
  uint32_t a = 1, b = 0;
  while (in < raw) {
    size_t n = raw - in < 65535 ? raw - in : 65535;
    z[at] = in + n == raw;
    z[at + 1] = n & 255, z[at + 2] = (unsigned char)(n >> 8), z[at + 3] = ~n & 255,
           z[at + 4] = (unsigned char)(~n >> 8);
    memcpy(z + at + 5, rows + in, n);
    for (size_t i = 0; i < n; i++) a = (a + rows[in + i]) % 65521, b = (b + a) % 65521;
    at += 5 + n;
    in += n;
  }
  png_word(z + at, b << 16 | a);
  free(rows);
  *out = z;
  return at + 4;
}

/* Writes width x height pixels, one byte each, an index into palette (256 times red, green, blue). Returns 0, or -1 with errno. */
static int png_write(const char *path, const unsigned char *pixels, int width, int height, const unsigned char *palette)
{
  unsigned char head[13] = {0}, *z = NULL;
  size_t n = png_pack(pixels, width, height, &z);
  FILE *f = n ? fopen(path, "wb") : NULL;
  if (!f) {
    free(z);
    return -1;
  }
  png_word(head, (uint32_t)width);
  png_word(head + 4, (uint32_t)height);
  head[8] = 8; /* bits */
  head[9] = 3; /* palette */
  int bad = fwrite("\x89PNG\r\n\x1a\n", 1, 8, f) != 8 || png_chunk(f, "IHDR", head, sizeof head) ||
            png_chunk(f, "PLTE", palette, 768) || png_chunk(f, "IDAT", z, n) || png_chunk(f, "IEND", NULL, 0);
  free(z);
  return fclose(f) || bad ? -1 : 0;
}
#endif
