/* The ways in which source.c sends, and drain.c receives, as numbers of messages; message k of a rank is of TAG(k) and LENGTH(k) ints. */
#define WAYS              9
#define ROUNDS            20
#define TAG(k)            (k)
#define LENGTH(k)         ((k) % 7 == 6 ? 100000 : (k) % 7 == 5 ? 5000 : (k) % 7)
#define VALUE(rank, k, i) ((rank)*1000003 + (k)*1009 + (i))
